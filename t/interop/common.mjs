// SPDX-License-Identifier: MIT
// What the JavaScript clients share: arguments, output lines, plain values, packages from the
// folder the interop tools were installed in.
//
// Arguments: FACTS.json KIND=URL... (see t/lib/interop.py); $EGW_INTEROP_DIR is the folder.
import fs from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { pathToFileURL } from 'node:url';

export const BURST = 50;

const home = path.join(process.env.EGW_INTEROP_DIR, 'package.json');
const require = createRequire(home);

// Imports a package (or package/sub) from the tools' folder.
export async function use(name) {
  return import(pathToFileURL(require.resolve(name)).href);
}

export const facts = JSON.parse(fs.readFileSync(process.argv[2], 'utf8'));
export const targets = process.argv.slice(3).map((a) => {
  const at = a.indexOf('=');
  return { kind: a.slice(0, at), url: a.slice(at + 1) };
});

export const ipcPath = (url) => url.replace(/^ipc:\/\//, '');
export const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

// Anything a client returns as JSON-able data, with members in a fixed order.
export function plain(value, depth = 0) {
  if (value === undefined) return null;
  if (typeof value === 'bigint') return value.toString();
  if (typeof value === 'function' || typeof value === 'symbol') return undefined;
  if (value === null || typeof value !== 'object') return value;
  if (depth > 8) return '...';
  if (Array.isArray(value)) return value.map((v) => plain(v, depth + 1));
  if (value instanceof Map) return plain(Object.fromEntries(value), depth + 1);
  if (value instanceof Uint8Array) return '0x' + Buffer.from(value).toString('hex');
  const out = {};
  for (const key of Object.keys(value).sort()) {
    const inner = plain(value[key], depth + 1);
    if (inner !== undefined && key !== 'provider') out[key] = inner;
  }
  return out;
}

// The parts of an error that come from the wire or from decoding it.
export function failure(error) {
  const out = { raised: error.name, text: (error.shortMessage ?? error.message ?? '').split('\n')[0] };
  for (const key of ['code', 'data', 'reason', 'revert', 'details', 'action', 'errorName', 'errorArgs',
    'metaMessages', 'innerError', 'error']) {
    if (error[key] !== undefined) out[key] = plain(error[key] instanceof Error ? failure(error[key]) : error[key]);
  }
  let cause = error.cause;
  for (let i = 0; cause && i < 6; i++, cause = cause.cause) {
    (out.causes ??= []).push(plain({ raised: cause.name, code: cause.code, data: cause.data,
      text: cause.shortMessage ?? cause.details }));
  }
  return out;
}

// Runs a step and prints its outcome; gives the value, undefined after a failure.
export function reporter(on) {
  return async (step, make) => {
    let value;
    let line;
    try {
      value = await limited(make(), 60000, step);
      line = plain(value);
    } catch (error) {
      line = failure(error);
    }
    process.stdout.write(JSON.stringify({ on, step, value: line === undefined ? null : line }) + '\n');
    return value;
  };
}

export function limited(promise, ms, what) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`no answer to ${what} within ${ms} ms`)), ms);
  });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

// Repeats until make() gives something; for receipts.
export async function until(make, what) {
  const end = Date.now() + 30000;
  for (;;) {
    const value = await make();
    if (value) return value;
    if (Date.now() > end) throw new Error(`${what} did not come`);
    await sleep(20);
  }
}

// Ends the process although a client may leave timers or sockets behind.
export async function main(run) {
  for (const { kind, url } of targets) {
    try {
      await limited(run(kind, url), 240000, kind);
    } catch (error) {
      process.stdout.write(JSON.stringify({ on: kind, step: 'ended early', value: failure(error) }) + '\n');
    }
  }
  process.stdout.write('', () => process.exit(0));
}
