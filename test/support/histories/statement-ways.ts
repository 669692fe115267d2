// The ways in which the gateway takes a statement that writes.

/** The ways; with a key a repetition is safe. */
export const writingWays = ['/db', '/v1/query', 'batch', 'batch with key'] as const;
export type WritingWay = (typeof writingWays)[number];

/** A POST. */
export type WritingRequest = {
  readonly path: string;
  readonly body: object;
  readonly headers: Readonly<Record<string, string>>;
};

/** Composes the request for one statement. */
export function composeWrite(way: WritingWay, sql: string, key: string): WritingRequest {
  switch (way) {
    case '/db':
      return { path: '/db', body: { SQL: sql }, headers: {} };
    case '/v1/query':
      return { path: '/v1/query', body: { sql }, headers: {} };
    case 'batch':
      return { path: '/v1/batch', body: { statements: [{ sql }] }, headers: {} };
    case 'batch with key':
      return { ...composeWrite('batch', sql, key), headers: { 'Idempotency-Key': key } };
    default:
      throw new Error(`no such way: ${way satisfies never}`);
  }
}
