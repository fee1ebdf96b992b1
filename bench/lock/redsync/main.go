// redsync as a peer of bench/lock: the same JSON lines as worker.ts.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	goredislib "github.com/redis/go-redis/v9"
)

type request struct {
	Clients int `json:"clients"`
	Ms      int `json:"ms"`
}

type answer struct {
	Samples []float64 `json:"samples"`
	Errors  int       `json:"errors"`
	RssMb   float64   `json:"rss_mb"`
}

func rssMb() float64 {
	text, _ := os.ReadFile("/proc/self/statm")
	fields := strings.Fields(string(text))
	if len(fields) < 2 {
		return 0
	}
	pages, _ := strconv.ParseFloat(fields[1], 64)
	return pages * float64(os.Getpagesize()) / (1 << 20)
}

// A dead node is what is measured; go-redis would tell about it thousands of times.
type silence struct{}

func (silence) Printf(context.Context, string, ...interface{}) {}

func main() {
	goredislib.SetLogger(silence{})
	var pools []redis.Pool
	for _, port := range os.Args[1:] {
		client := goredislib.NewClient(&goredislib.Options{Addr: "127.0.0.1:" + port, PoolSize: 40})
		pools = append(pools, goredis.NewPool(client))
	}
	locks := redsync.New(pools...)
	fmt.Println(`{"ready":true}`)
	var number atomic.Int64
	scanner := bufio.NewScanner(os.Stdin)
	for scanner.Scan() {
		var r request
		if json.Unmarshal(scanner.Bytes(), &r) != nil {
			continue
		}
		out := answer{Samples: []float64{}}
		var mu sync.Mutex
		var wg sync.WaitGroup
		until := time.Now().Add(time.Duration(r.Ms) * time.Millisecond)
		for c := 0; c < r.Clients; c++ {
			wg.Add(1)
			go func() {
				defer wg.Done()
				for time.Now().Before(until) {
					key := fmt.Sprintf("bench:redsync:%d:%d", os.Getpid(), number.Add(1))
					start := time.Now()
					mutex := locks.NewMutex(key, redsync.WithExpiry(10*time.Second), redsync.WithTries(1))
					err := mutex.Lock()
					if err == nil {
						_, err = mutex.Unlock()
					}
					took := float64(time.Since(start).Microseconds()) / 1000
					mu.Lock()
					if err == nil {
						out.Samples = append(out.Samples, took)
					} else {
						out.Errors++
					}
					mu.Unlock()
				}
			}()
		}
		wg.Wait()
		out.RssMb = rssMb()
		line, _ := json.Marshal(out)
		fmt.Println(string(line))
	}
}
