// What one look at a server tells of its part among the others.
// Must not know how it is asked, nor what follows from it.
import type { ServerIdentity } from '../mysql/identity.ts';
import type { Position } from './position.ts';

/** A server that another one follows, as that one names it. */
export type Source = {
  /** Its server_id; null: it has not been reached since the replica was started, or not at all. */
  readonly number: string | null;
  /** MySQL's server_uuid; null: MariaDB has none, or it has not been reached yet. */
  readonly uuid: string | null;
  /** `host:port`, as the replica was given them; null: the account may not see it. */
  readonly address: string | null;
  /** Whether the replica is connected to it now (`Slave_IO_Running`). */
  readonly isConnected: boolean;
};

/** Whom a server replicates from. `unseen`: the account may not see it, and nothing else tells. */
export type Following =
  | { readonly kind: 'none' | 'unknown' }
  | {
      readonly kind: 'listed';
      /** None: the account may not see them. */
      readonly sources: readonly Source[];
    };

/** A node of a Galera cluster. */
export type GaleraNode = {
  readonly isReady: boolean;
  /** 4 is Synced; the others are on their way there, or away. */
  readonly state: number;
  readonly rejectsQueries: boolean;
};

/** A member of a group of MySQL's Group Replication. */
export type GroupMember = {
  readonly name: string;
  readonly hasSinglePrimary: boolean;
  /** ONLINE and others; null: the account may not see it. */
  readonly state: string | null;
  /** False: it has not taken part in its group since it was started, as far as any account may see that. Null: that is not told. */
  readonly takesPart: boolean | null;
  /** False: it hears no more of half of its group or more, and what it is sent waits. Null: the account may not see it. */
  readonly hasMajority: boolean | null;
};

/** A server at one moment. */
export type ServerView = {
  readonly identity: ServerIdentity;
  /** Its server_id. */
  readonly number: string;
  /** Its server_uuid; null: MariaDB has none. */
  readonly uuid: string | null;
  /** For people: `MariaDB 10.11.6`. */
  readonly version: string;
  readonly isReadOnly: boolean;
  readonly following: Following;
  /** Null: it has none, or does not tell. */
  readonly position: Position | null;
  readonly galera: GaleraNode | null;
  readonly group: GroupMember | null;
  /** When the server was asked, by performance.now(): what it says may be younger. */
  readonly askedAt: number;
};
