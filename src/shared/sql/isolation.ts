// The isolation levels of a transaction.
// Must not know who asks for one.

/** As SQL has them. */
export const isolationLevels = [
  'read uncommitted',
  'read committed',
  'repeatable read',
  'serializable',
] as const;

export type Isolation = (typeof isolationLevels)[number];
