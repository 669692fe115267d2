// Where the pipeline's sessions come from: lent by the pool, limited, and reset where they were spoiled.
// Must not know what they are used for.
import type { Log } from '../../../shared/process/log.ts';
import type { Consistency } from '../../servers/consistency/consistency.ts';
import type { Pool } from '../../servers/pool/pool.ts';
import type { Session } from '../../servers/pool/session.ts';
import { limitStatements, PipelineSession } from './pipeline-session.ts';

/** Whoever wants the sessions, and gives them back to the pool. */
export interface PipelineSessionEvents {
  admitted(place: PipelineSession): void;
}

/** Asks for sessions, one at a time or several. */
export class PipelineSessions {
  /** Sessions that are on their way. */
  opening = 0;
  readonly #pool: Pool;
  readonly #events: PipelineSessionEvents;
  readonly #consistency: Consistency | null;
  readonly #log: Log;
  #isClosed = false;

  constructor(
    pool: Pool,
    events: PipelineSessionEvents,
    consistency: Consistency | null,
    log: Log,
  ) {
    this.#pool = pool;
    this.#consistency = consistency;
    this.#events = events;
    this.#log = log;
  }

  /** Asks the pool for one; where it has none to lend, nothing comes of it. */
  open(): void {
    this.opening += 1;
    this.#pool.request({
      isOwn: true,
      granted: (session) => void this.#admit(session),
      refused: () => {
        this.opening -= 1;
      },
    });
  }

  /** Resets a spoiled session and keeps it: in the pool it might be lent to what the pipeline has just got rid of. */
  renew(session: Session): void {
    this.opening += 1;
    this.#pool.refresh(session).then(
      () => this.#admit(session),
      () => {
        this.opening -= 1;
        this.#pool.release(session, 'broken');
      },
    );
  }

  /** What is still on its way goes back to the pool. */
  close(): void {
    this.#isClosed = true;
  }

  async #admit(session: Session): Promise<void> {
    try {
      await limitStatements(session);
      if (this.#isClosed) this.#pool.release(session, 'unclean');
      else this.#events.admitted(new PipelineSession(session, this.#consistency));
    } catch {
      this.#log.warn('a session could not be prepared for pipelining');
      this.#pool.release(session, 'broken');
    } finally {
      this.opening -= 1;
    }
  }
}
