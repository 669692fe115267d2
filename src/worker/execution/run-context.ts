// What all runs at one server share: its pool, its pipeline, what is known of it.
// Must not know how statements are run.

import type { Consistency } from '../servers/consistency/consistency.ts';
import type { Control } from '../servers/pool/control.ts';
import type { Pool } from '../servers/pool/pool.ts';
import type { ReservedSessions } from '../servers/pool/reserved-sessions.ts';
import type { Server } from '../servers/server.ts';
import type { Coalescer } from './coalescer.ts';
import type { Pipeline } from './pipeline/pipeline.ts';
import type { Run } from './run.ts';
import type { Sharing } from './sharing.ts';

/** Of one server, in one worker. */
export type RunContext = {
  readonly server: Server;
  /** The server's name in logs and metrics. */
  readonly address: string;
  readonly pool: Pool;
  readonly reserved: ReservedSessions;
  readonly control: Control;
  /** Null: every statement runs on a session of its own. */
  readonly pipeline: Pipeline | null;
  /** Null: it is the only server, and nobody asks what was seen there. */
  readonly consistency: Consistency | null;
  /** Null: every request has its statements run, whatever others ask for. */
  readonly coalescer: Coalescer<Sharing<Run>> | null;
};
