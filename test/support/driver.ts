// The real @planetscale/database before a gateway.
import { Client, DatabaseError } from '@planetscale/database';
import type { Gateway } from './gateway.ts';

/** A token with all that a URL would have encoded. */
export const driverToken = 'to/ken+1==';

/** Settings under which drivers are served. */
export const driverSettings = { token: driverToken, drivers: 'planetscale' } as const;

/** The URL by which a driver reaches a gateway, with user and password in it. */
export function driverUrl({ url }: Pick<Gateway, 'url'>, password = driverToken): string {
  return url.replace('://', `://app:${encodeURIComponent(password)}@`);
}

/** A client of the driver. Each of its statements is a separate session. */
export function createDriver(gateway: Pick<Gateway, 'url'>): Client {
  return new Client({ url: driverUrl(gateway) });
}

/** The reason that a promise is rejected with, which must be the driver's own error. */
export async function driverError(promise: Promise<unknown>): Promise<DatabaseError> {
  const error = await promise.then(
    () => new Error('it succeeded'),
    (reason: unknown) => reason,
  );
  if (error instanceof DatabaseError) return error;
  throw error;
}

/** Asks as a driver does, and shows the reply as it came. */
export async function postAsDriver(
  { url }: Pick<Gateway, 'url'>,
  body: unknown,
  { method = 'Execute', password = driverToken, headers = {} } = {},
): Promise<{ status: number; headers: Headers; body: Record<string, unknown> }> {
  const reply = await fetch(`${url}/psdb.v1alpha1.Database/${method}`, {
    method: 'POST',
    headers: {
      'Content-Type': 'application/json',
      Authorization: `Basic ${Buffer.from(`app:${password}`).toString('base64')}`,
      ...headers,
    },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  });
  return {
    status: reply.status,
    headers: reply.headers,
    body: (await reply.json()) as Record<string, unknown>,
  };
}
