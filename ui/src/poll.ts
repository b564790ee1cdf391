// Repeats a request while the window is visible, and less often while the request fails.

export interface Polling {
  /** Asks at once. */
  now(): void;
  pause(isPaused: boolean): void;
  stop(): void;
}

/** Delay after this many failures in a row: twice as long each time, up to a minute. */
export const retryDelay = (interval: number, failures: number): number => Math.min(60_000, interval * 2 ** failures);

/** `ask` gets a signal that aborts when the polling stops. Its errors go to `onError`, and polling continues. */
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
