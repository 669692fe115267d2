// The backlog of a unix socket whose process accepts nothing, filled by connections that send nothing.
import { connect, type Socket } from 'node:net';

/** More than any kernel's limit by default (4096). */
const maxPlaces = 5_000;

/** Takes all places: later connections are refused. Resolves to the function that gives them back, which the caller must call. */
export async function fillBacklog(path: string): Promise<() => void> {
  const taken: Socket[] = [];
  const leave = () => {
    for (const socket of taken) socket.destroy();
  };
  while (taken.length < maxPlaces) {
    const { socket, code } = await attempt(path);
    taken.push(socket);
    if (code === 'EAGAIN') return leave;
    if (code !== null) {
      leave();
      throw new Error(`${path}: ${code}`);
    }
  }
  leave();
  throw new Error(`${path}: ${maxPlaces} connections do not fill it`);
}

/** Whether a connection finds a place: the process has to accept those that were given back first. */
export async function hasPlace(path: string): Promise<boolean> {
  const { socket, code } = await attempt(path);
  socket.destroy();
  return code === null;
}

async function attempt(path: string): Promise<{ socket: Socket; code: string | null }> {
  const socket = connect(path);
  const code = await new Promise<string | null>((resolve) => {
    socket.once('connect', () => resolve(null));
    socket.on('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message));
  });
  return { socket, code };
}
