// Redisson's RedissonRedLock as a peer of bench/lock: the same JSON lines as worker.ts.

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import org.redisson.Redisson;
import org.redisson.RedissonRedLock;
import org.redisson.api.RLock;
import org.redisson.api.RedissonClient;
import org.redisson.config.Config;

public class RedissonPeer {
  static final long LEASE_MS = 10_000;
  static final Pattern REQUEST = Pattern.compile("\"clients\":(\\d+),\"ms\":(\\d+)");

  public static void main(String[] ports) throws Exception {
    List<RedissonClient> clients = new ArrayList<>();
    for (String port : ports) {
      Config config = new Config();
      config.useSingleServer().setAddress("redis://127.0.0.1:" + port).setConnectionPoolSize(40);
      clients.add(Redisson.create(config));
    }
    System.out.println("{\"ready\":true}");
    AtomicLong number = new AtomicLong();
    BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
    for (String line = in.readLine(); line != null; line = in.readLine()) {
      Matcher request = REQUEST.matcher(line);
      if (!request.find()) continue;
      int threads = Integer.parseInt(request.group(1));
      long until = System.nanoTime() + Long.parseLong(request.group(2)) * 1_000_000;
      List<Double> samples = new ArrayList<>();
      AtomicInteger errors = new AtomicInteger();
      List<Thread> running = new ArrayList<>();
      for (int i = 0; i < threads; i++) {
        Thread thread =
            new Thread(
                () -> {
                  while (System.nanoTime() < until) {
                    String key = "bench:redisson:" + number.incrementAndGet();
                    long start = System.nanoTime();
                    boolean good = cycle(clients, key);
                    double ms = (System.nanoTime() - start) / 1e6;
                    if (!good) errors.incrementAndGet();
                    else synchronized (samples) {
                      samples.add(ms);
                    }
                  }
                });
        thread.start();
        running.add(thread);
      }
      for (Thread thread : running) thread.join();
      String all = samples.stream().map(String::valueOf).collect(Collectors.joining(","));
      System.out.printf(Locale.ROOT, "{\"samples\":[%s],\"errors\":%d,\"rss_mb\":%.1f}%n", all, errors.get(), rssMb());
    }
    System.exit(0);
  }

  static boolean cycle(List<RedissonClient> clients, String key) {
    RLock[] locks = clients.stream().map(client -> client.getLock(key)).toArray(RLock[]::new);
    RedissonRedLock lock = new RedissonRedLock(locks);
    try {
      if (!lock.tryLock(0, LEASE_MS, TimeUnit.MILLISECONDS)) return false;
      lock.unlock();
      return true;
    } catch (Exception e) {
      return false;
    }
  }

  static double rssMb() throws Exception {
    String[] fields = Files.readString(Path.of("/proc/self/statm")).split(" ");
    return Long.parseLong(fields[1]) * 4096.0 / (1 << 20);
  }
}
