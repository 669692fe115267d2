// The unix socket at which a worker takes requests that other workers have taken first, and pass on.
// Must not know what is in them.
import { createServer, type Socket } from 'node:net';
import { shortenPath } from '../../shared/process/socket-paths.ts';

/** A socket that takes them. */
export type ForwardedConnections = {
  /** Closes it, and takes its name away; resolves when the last of its connections is gone. Idempotent. */
  readonly close: () => Promise<void>;
};

/**
 * Listens at the path, with rights for the owner alone, and hands each connection on.
 * @param onError told why it does not listen, or cannot accept
 */
export function acceptForwarded(
  path: string,
  take: (socket: Socket) => void,
  onError: (error: Error) => void,
): ForwardedConnections {
  const server = createServer({ noDelay: true }, take);
  server.on('error', onError);
  server.unref();
  const short = shortenPath(path);
  server.once('listening', short.forget);
  // The name is bound before `listen` returns; `exclusive` keeps it from being asked for at the supervisor.
  const usual = process.umask(0o177);
  try {
    server.listen({ path: short.path, exclusive: true });
  } finally {
    process.umask(usual);
  }
  return {
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
      }),
  };
}
