// Command linearisable checks a history of epochs and deliveries against a register per split.
//
// It reads one JSON document from standard input: a list of operations, each with the members split, kind, client,
// call, return, epoch, from and to. An operation without a return has not returned. It prints {"ok": …, "split": …}:
// the first split whose history no sequence of single steps explains.
//
// Per split the register holds the newest epoch and the position. "adopt" is legal when it brings a newer epoch;
// "deliver" is legal in the newest epoch, from the position on, and advances it; "reset" starts at a position, as a
// user's restart of a source does.
package main

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"sort"
	"time"

	"github.com/anishathalye/porcupine"
)

type operation struct {
	Split  string   `json:"split"`
	Kind   string   `json:"kind"`
	Client int      `json:"client"`
	Call   float64  `json:"call"`
	Return *float64 `json:"return"`
	Epoch  int64    `json:"epoch"`
	From   int64    `json:"from"`
	To     int64    `json:"to"`
}

type state struct {
	epoch    int64
	position int64
}

const unset = -1

func step(now, input, _ any) (bool, any) {
	before, op := now.(state), input.(operation)
	switch op.Kind {
	case "adopt":
		return op.Epoch > before.epoch, state{op.Epoch, before.position}
	case "deliver":
		fits := op.Epoch == before.epoch && (before.position == unset || op.From == before.position)
		return fits && op.To >= op.From, state{before.epoch, op.To}
	case "reset":
		return true, state{before.epoch, op.From}
	}
	return false, before
}

var model = porcupine.Model{
	Init: func() any { return state{0, unset} },
	Step: step,
	DescribeOperation: func(input, _ any) string {
		op := input.(operation)
		return fmt.Sprintf("%s epoch %d [%d, %d)", op.Kind, op.Epoch, op.From, op.To)
	},
}

func history(operations []operation) []porcupine.Operation {
	made := make([]porcupine.Operation, 0, len(operations))
	for _, op := range operations {
		end := int64(math.MaxInt64)
		if op.Return != nil {
			end = int64(*op.Return * 1e6)
		}
		made = append(made, porcupine.Operation{ClientId: op.Client, Input: op, Call: int64(op.Call * 1e6), Return: end})
	}
	return made
}

func main() {
	var operations []operation
	if err := json.NewDecoder(os.Stdin).Decode(&operations); err != nil {
		fmt.Fprintln(os.Stderr, "linearisable: no history on standard input:", err)
		os.Exit(2)
	}
	splits := map[string][]operation{}
	for _, op := range operations {
		splits[op.Split] = append(splits[op.Split], op)
	}
	names := make([]string, 0, len(splits))
	for name := range splits {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		if result := porcupine.CheckOperationsTimeout(model, history(splits[name]), 30*time.Second); result != porcupine.Ok {
			answer, _ := json.Marshal(map[string]any{"ok": false, "split": name, "result": string(result)})
			fmt.Println(string(answer))
			os.Exit(1)
		}
	}
	fmt.Printf("{\"ok\": true, \"splits\": %d, \"operations\": %d}\n", len(names), len(operations))
}
