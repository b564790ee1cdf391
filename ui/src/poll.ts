// Asks again and again while somebody looks: pauses while the window is hidden, and asks less often what fails.

export interface Polling {
  /** Asks now, whatever the time. */
  now(): void;
  pause(isPaused: boolean): void;
  stop(): void;
}

/** How long to wait after so many failures in a row: twice as long each time, up to a minute. */
export const patience = (every: number, failures: number): number => Math.min(60_000, every * 2 ** failures);

/** `ask` gets a signal that ends with the polling. What it throws goes to `failed`, and asking goes on. */
export function poll(
  ask: (signal: AbortSignal) => Promise<void>,
  every: number,
  failed: (error: unknown) => void,
): Polling {
  const ending = new AbortController();
  let timer: ReturnType<typeof setTimeout> | undefined;
  let [isAsking, isPaused, failures] = [false, false, 0];

  const isIdle = () => isPaused || document.hidden || ending.signal.aborted;
  const turn = async () => {
    clearTimeout(timer);
    if (isAsking || ending.signal.aborted) return;
    isAsking = true;
    try {
      await ask(ending.signal);
      failures = 0;
    } catch (error) {
      failures += 1;
      if (!ending.signal.aborted) failed(error);
    }
    isAsking = false;
    if (!isIdle()) timer = setTimeout(turn, patience(every, failures));
  };
  const look = () => {
    clearTimeout(timer);
    if (!isIdle()) void turn();
  };
  document.addEventListener("visibilitychange", look);
  void turn();
  return {
    now: () => void turn(),
    pause(paused) {
      isPaused = paused;
      look();
    },
    stop() {
      ending.abort();
      clearTimeout(timer);
      document.removeEventListener("visibilitychange", look);
    },
  };
}
