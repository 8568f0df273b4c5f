// SPDX-License-Identifier: MIT

// go-ethereum's own client (rpc, ethclient) over HTTP, WebSocket and IPC: does the same things on
// each URL and prints what it got, one JSON object a line. Arguments: FACTS.json KIND=URL... (see
// t/lib/interop.py).
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/ethereum/go-ethereum"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/ethclient"
	"github.com/ethereum/go-ethereum/rpc"
)

const burst = 200

type facts struct {
	Contract    common.Address           `json:"contract"`
	Accounts    []common.Address         `json:"accounts"`
	Selectors   map[string]string        `json:"selectors"`
	Signed      map[string]hexutil.Bytes `json:"signed"`
	Noted       []common.Hash            `json:"noted"`
	Paid        common.Hash              `json:"paid"`
	BigBlock    int64                    `json:"big_block"`
	BigHash     common.Hash              `json:"big_hash"`
	UnknownHash common.Hash              `json:"unknown_hash"`
}

// call makes a message to the contract: a selector and words.
func (f *facts) call(name string, words ...int64) ethereum.CallMsg {
	data := common.FromHex(f.Selectors[name])
	for _, w := range words {
		data = append(data, common.LeftPadBytes(big.NewInt(w).Bytes(), 32)...)
	}
	return ethereum.CallMsg{To: &f.Contract, Data: data}
}

func failure(err error) any {
	out := map[string]any{"raised": fmt.Sprintf("%T", err), "text": err.Error()}
	var coded rpc.Error
	if errors.As(err, &coded) {
		out["code"] = coded.ErrorCode()
	}
	var data rpc.DataError
	if errors.As(err, &data) {
		out["data"] = data.ErrorData()
	}
	return out
}

type reporter struct{ on string }

// step runs one thing within a minute and prints what came of it.
func (r reporter) step(name string, do func(ctx context.Context) (any, error)) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	value, err := do(ctx)
	if err != nil {
		value = failure(err)
	}
	line, err := json.Marshal(map[string]any{"on": r.on, "step": name, "value": value})
	if err != nil {
		line, _ = json.Marshal(map[string]any{"on": r.on, "step": name, "value": err.Error()})
	}
	fmt.Println(string(line))
}

func block(b *types.Block, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	return map[string]any{"header": b.Header(), "hash": b.Hash(), "transactions": b.Transactions(),
		"withdrawals": b.Withdrawals()}, nil
}

func reads(r reporter, c *ethclient.Client, f *facts) {
	number := big.NewInt(f.BigBlock)
	step := r.step
	step("chain id", func(x context.Context) (any, error) { return c.ChainID(x) })
	step("block number", func(x context.Context) (any, error) { return c.BlockNumber(x) })
	step("full block by number", func(x context.Context) (any, error) { return block(c.BlockByNumber(x, number)) })
	step("full block by hash", func(x context.Context) (any, error) { return block(c.BlockByHash(x, f.BigHash)) })
	step("header by tag", func(x context.Context) (any, error) {
		return c.HeaderByNumber(x, big.NewInt(int64(rpc.EarliestBlockNumber)))
	})
	step("unknown block", func(x context.Context) (any, error) { return block(c.BlockByNumber(x, big.NewInt(1e9))) })
	step("block receipts", func(x context.Context) (any, error) {
		return c.BlockReceipts(x, rpc.BlockNumberOrHashWithHash(f.BigHash, true))
	})
	step("transaction", func(x context.Context) (any, error) {
		tx, pending, err := c.TransactionByHash(x, f.Paid)
		return []any{tx, pending}, err
	})
	step("unknown transaction", func(x context.Context) (any, error) {
		tx, _, err := c.TransactionByHash(x, f.UnknownHash)
		return tx, err
	})
	step("receipt", func(x context.Context) (any, error) { return c.TransactionReceipt(x, f.Noted[0]) })
	step("logs", func(x context.Context) (any, error) {
		return c.FilterLogs(x, ethereum.FilterQuery{Addresses: []common.Address{f.Contract},
			FromBlock: big.NewInt(0), ToBlock: number})
	})
	step("call", func(x context.Context) (any, error) {
		got, err := c.CallContract(x, f.call("sum(uint256,uint256)", 40, 2), nil)
		return hexutil.Bytes(got), err
	})
	step("call at a hash", func(x context.Context) (any, error) {
		got, err := c.CallContractAtHash(x, f.call("values(uint256)", 3), f.BigHash)
		return hexutil.Bytes(got), err
	})
	for _, name := range []string{"refuse(uint256)", "fail()", "panic(uint256)"} {
		step("reverts: "+name, func(x context.Context) (any, error) {
			return c.CallContract(x, f.call(name, 0), nil)
		})
	}
	step("estimate of a revert", func(x context.Context) (any, error) { return c.EstimateGas(x, f.call("fail()")) })
	step("balance", func(x context.Context) (any, error) { return c.BalanceAt(x, f.Accounts[0], number) })
	step("code", func(x context.Context) (any, error) { return c.CodeAt(x, f.Contract, nil) })
	step("storage", func(x context.Context) (any, error) { return c.StorageAt(x, f.Contract, common.Hash{}, nil) })
	step("fee history", func(x context.Context) (any, error) { return c.FeeHistory(x, 2, number, []float64{10, 90}) })
	step("unknown method", func(x context.Context) (any, error) {
		var out any
		return out, c.Client().CallContext(x, &out, "eth_noSuchMethod")
	})
	step("many at once", func(x context.Context) (any, error) { return many(x, c, f) })
}

// many sends small and large requests together; their answers in order.
func many(ctx context.Context, c *ethclient.Client, f *facts) (any, error) {
	out := make([]any, burst)
	errs := make([]error, burst)
	var wait sync.WaitGroup
	for i := range out {
		wait.Add(1)
		go func() {
			defer wait.Done()
			at := big.NewInt(int64(i % 7))
			if i%5 == 4 {
				out[i], errs[i] = block(c.BlockByNumber(ctx, at))
			} else {
				out[i], errs[i] = c.BalanceAt(ctx, f.Accounts[0], at)
			}
		}()
	}
	wait.Wait()
	return out, errors.Join(errs...)
}

// send sends the transaction signed for this nonce and waits for its receipt.
func send(ctx context.Context, c *ethclient.Client, f *facts, nonce uint64) (any, error) {
	var hash common.Hash
	raw := f.Signed[fmt.Sprint(nonce)]
	if err := c.Client().CallContext(ctx, &hash, "eth_sendRawTransaction", raw); err != nil {
		return nil, err
	}
	for {
		receipt, err := c.TransactionReceipt(ctx, hash)
		if err == nil {
			return receipt, nil
		}
		if !errors.Is(err, ethereum.NotFound) {
			return nil, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func batch(ctx context.Context, c *ethclient.Client, f *facts, calls ...rpc.BatchElem) (any, error) {
	for i := range calls {
		calls[i].Result = new(json.RawMessage)
	}
	if err := c.Client().BatchCallContext(ctx, calls); err != nil {
		return nil, err
	}
	out := []any{}
	for _, call := range calls {
		if call.Error != nil {
			out = append(out, failure(call.Error))
		} else {
			out = append(out, call.Result)
		}
	}
	return out, nil
}

func batches(r reporter, c *ethclient.Client, f *facts) {
	element := func(method string, args ...any) rpc.BatchElem { return rpc.BatchElem{Method: method, Args: args} }
	r.step("batch", func(x context.Context) (any, error) {
		fails := map[string]any{"to": f.Contract, "data": hexutil.Bytes(f.call("fail()").Data)}
		return batch(x, c, f, element("eth_getBlockByNumber", hexutil.Uint64(f.BigBlock), true),
			element("eth_getBalance", f.Accounts[0], "0x1"), element("eth_call", fails, "latest"),
			element("eth_getTransactionByHash", f.UnknownHash))
	})
	r.step("batch of one", func(x context.Context) (any, error) { return batch(x, c, f, element("eth_chainId")) })
}

// pushed subscribes to heads and logs and makes one of each.
func pushed(ctx context.Context, heads, logs *ethclient.Client, f *facts, nonce uint64) (any, error) {
	headers := make(chan *types.Header, 16)
	events := make(chan types.Log, 16)
	one, err := heads.SubscribeNewHead(ctx, headers)
	if err != nil {
		return nil, err
	}
	defer one.Unsubscribe()
	two, err := logs.SubscribeFilterLogs(ctx, ethereum.FilterQuery{Addresses: []common.Address{f.Contract}}, events)
	if err != nil {
		return nil, err
	}
	defer two.Unsubscribe()
	if _, err := send(ctx, heads, f, nonce); err != nil {
		return nil, err
	}
	out := map[string]any{}
	for len(out) < 2 {
		select {
		case header := <-headers:
			out["head"] = header
		case event := <-events:
			out["log"] = event
		case err := <-one.Err():
			return nil, err
		case err := <-two.Err():
			return nil, err
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return out, nil
}

func run(kind, url string, f *facts) error {
	r := reporter{"go-ethereum " + kind}
	c, err := ethclient.Dial(url)
	if err != nil {
		return err
	}
	defer c.Close()
	reads(r, c, f)
	nonce, err := c.NonceAt(context.Background(), f.Accounts[0], nil)
	if err != nil {
		return err
	}
	r.step("send raw transaction and receipt", func(x context.Context) (any, error) { return send(x, c, f, nonce) })
	r.step("nonce too low", func(x context.Context) (any, error) { return send(x, c, f, 0) })
	batches(r, c, f)
	if kind == "http" {
		return nil
	}
	other, err := ethclient.Dial(url)
	if err != nil {
		return err
	}
	defer other.Close()
	r.step("subscriptions", func(x context.Context) (any, error) { return pushed(x, c, other, f, nonce+1) })
	return nil
}

func main() {
	var f facts
	text, err := os.ReadFile(os.Args[1])
	if err == nil {
		err = json.Unmarshal(text, &f)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	for _, target := range os.Args[2:] {
		kind, url, _ := strings.Cut(target, "=")
		if err := run(kind, strings.TrimPrefix(url, "ipc://"), &f); err != nil {
			line, _ := json.Marshal(map[string]any{"on": kind, "step": "ended early", "value": err.Error()})
			fmt.Println(string(line))
		}
	}
}
