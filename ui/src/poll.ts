// Asks again and again while somebody looks: pauses while the window is hidden, and asks less often what fails.

export interface Polling {
  /** Asks now, whatever the time. */
  now(): void;
  pause(isPaused: boolean): void;
  stop(): void;
}

/** How long to wait after so many failures in a row: twice as long each time, up to a minute. */
export const retryDelay = (interval: number, failures: number): number => Math.min(60_000, interval * 2 ** failures);

/** `ask` gets a signal that ends with the polling. What it throws goes to `failed`, and asking goes on. */
export function poll(
  ask: (signal: AbortSignal) => Promise<void>,
  interval: number,
  onError: (error: unknown) => void,
): Polling {
  const stopping = new AbortController();
  let timer: ReturnType<typeof setTimeout> | undefined;
  let [isAsking, isPaused, failures] = [false, false, 0];

  const isIdle = () => isPaused || document.hidden || stopping.signal.aborted;
  const run = async () => {
    clearTimeout(timer);
    if (isAsking || stopping.signal.aborted) return;
    isAsking = true;
    try {
      await ask(stopping.signal);
      failures = 0;
    } catch (error) {
      failures += 1;
      if (!stopping.signal.aborted) onError(error);
    }
    isAsking = false;
    if (!isIdle()) timer = setTimeout(run, retryDelay(interval, failures));
  };
  const resume = () => {
    clearTimeout(timer);
    if (!isIdle()) void run();
  };
  document.addEventListener("visibilitychange", resume);
  void run();
  return {
    now: () => void run(),
    pause(paused) {
      isPaused = paused;
      resume();
    },
    stop() {
      stopping.abort();
      clearTimeout(timer);
      document.removeEventListener("visibilitychange", resume);
    },
  };
}
