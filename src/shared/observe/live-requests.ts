// The requests that are being answered now, as they are told between processes and to people.
// Must not know who tells them, nor who asks.

/** Where a request is: it waits for MySQL, MySQL has it, its reply leaves, or its reader takes nothing of that. */
export type RequestPhase = 'waiting' | 'running' | 'streaming' | 'stalled';

/** A request as its worker knows it. */
export type LiveRequest = {
  /** Unique in its worker. */
  readonly id: number;
  readonly request_id: string;
  /** The trace that it is part of; null: of none. */
  readonly trace_id: string | null;
  readonly age_ms: number;
  readonly phase: RequestPhase;
  /** The client's address; null: it came by a unix socket, or has gone. */
  readonly client: string | null;
  /** The server that has it; null: none yet. */
  readonly backend: string | null;
  readonly section: string;
  /** Its statements without literals. */
  readonly shape: string | null;
};

/** What a worker tells of them. */
export type LiveRequests = {
  /** The oldest first, at most `mostToldRequests`. */
  readonly requests: readonly LiveRequest[];
  /** How many more there are. */
  readonly omitted: number;
};

/** A request as it is told to people. */
export type ToldRequest = Omit<LiveRequest, 'id'> & {
  /** Unique in the instance. */
  readonly id: string;
  /** The number of its worker. */
  readonly worker: number;
};

/** All requests of an instance, the oldest first. */
export type ToldRequests = {
  readonly requests: readonly ToldRequest[];
  readonly omitted: number;
  /** The numbers of workers that did not answer in time. */
  readonly silent_workers: readonly number[];
};

/** So many a worker are told: more is nothing that somebody reads. */
export const mostToldRequests = 500;
