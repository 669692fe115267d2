// The result of one probe of a server about its role.
import type { ServerIdentity } from '../mysql/identity.ts';
import type { Position } from './position.ts';

/** A server that a replica follows, as the replica names it. */
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

/** The servers that a server replicates from. `unknown`: the account may not see them, and nothing else shows them. */
export type Following =
  | { readonly kind: 'none' | 'unknown' }
  | {
      readonly kind: 'listed';
      /** Empty: the account may not see them. */
      readonly sources: readonly Source[];
    };

/** A node of a Galera cluster. */
export type GaleraNode = {
  readonly isReady: boolean;
  /** 4 is Synced. In other states the node is joining or leaving. */
  readonly state: number;
  readonly rejectsQueries: boolean;
};

/** A member of a group of MySQL's Group Replication. */
export type GroupMember = {
  readonly name: string;
  readonly hasSinglePrimary: boolean;
  /** ONLINE and others; null: the account may not see it. */
  readonly state: string | null;
  /** False: it has not joined its group since it was started, as far as any account may see. Null: that is not known. */
  readonly takesPart: boolean | null;
  /** False: it has lost contact with half of its group or more, so that writes wait. Null: the account may not see it. */
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
  /** Null: it has none, or does not report it. */
  readonly position: Position | null;
  readonly galera: GaleraNode | null;
  readonly group: GroupMember | null;
  /** When the server was asked, by performance.now(). Its answer may be younger. */
  readonly askedAt: number;
};
