// SPDX-License-Identifier: MIT
// JavaScript clients with an API key that may make few calls at once. Arguments: ethers|viem URL KEY
// COUNT; makes COUNT calls and prints what came of them as one JSON object.
import { createRequire } from 'node:module';
import path from 'node:path';
import { pathToFileURL } from 'node:url';

const [name, url, key, count] = process.argv.slice(2);
const require = createRequire(path.join(process.env.EGW_INTEROP_DIR, 'package.json'));
const library = await import(pathToFileURL(require.resolve(name)).href);
const headers = { Authorization: `Bearer ${key}` };

// A function that makes one call.
const makers = {
  ethers() {
    const request = new library.FetchRequest(url);
    request.setHeader('Authorization', headers.Authorization);
    const provider = new library.JsonRpcProvider(request, 1337,
      { staticNetwork: true, batchMaxCount: 1 });
    return () => provider.send('net_version', []);
  },
  viem() {
    const client = library.createPublicClient({
      transport: library.http(url, { fetchOptions: { headers } }),
    });
    return () => client.request({ method: 'net_version' });
  },
};

const call = makers[name]();
const ends = await Promise.allSettled(Array.from({ length: Number(count) }, call));
console.log(JSON.stringify({
  good: ends.filter((e) => e.status === 'fulfilled').length,
  errors: ends.filter((e) => e.status !== 'fulfilled').map((e) => String(e.reason).slice(0, 300)),
}));
process.exit(0);
