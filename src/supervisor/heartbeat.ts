// Counts one worker's unanswered pings, on the supervisor's own ticks.
// Must not know processes or clocks: a suspended machine ticks nobody to death.

/** The state of one worker's pings and of its boot. */
export type Heartbeat = {
  /** One tick: what to do now. */
  readonly tick: () =>
    | { readonly kind: 'ping'; readonly sequence: number }
    | { readonly kind: 'hung' };
  readonly pong: (sequence: number) => void;
  /** True when the last two pings are unanswered: not to be waited for. */
  readonly isSilent: () => boolean;
};

const mostUnanswered = 10;
const silentAfter = 2;

/** Creates the heartbeat of a worker that just began to listen. */
export function createHeartbeat(): Heartbeat {
  let sent = 0;
  let answered = 0;
  return {
    tick: () => {
      if (sent - answered >= mostUnanswered) return { kind: 'hung' };
      sent += 1;
      return { kind: 'ping', sequence: sent };
    },
    pong: (sequence) => {
      answered = Math.max(answered, Math.min(sequence, sent));
    },
    isSilent: () => sent - answered >= silentAfter,
  };
}
