// The file that holds the key by which gateways know each other's consistency tokens: read once, when an instance starts.
// Must not know the other settings, nor what is signed.
import { isOpenToOthers, readRegularFile } from './credentials.ts';

const leastBytes = 32;
/** Whoever names a log or a disk by mistake is told so. */
const mostBytes = 64 * 1024;

/** A key, or what is wrong with its file; never what stands in it. */
export type SessionKey =
  | { readonly ok: true; readonly key: string }
  | { readonly ok: false; readonly problem: string };

/** Reads the key, every byte of the file, and returns it in base64, as messages between processes carry it. */
export function readSessionKey(path: string): SessionKey {
  try {
    const { bytes, stats } = readRegularFile(path);
    const problem = isOpenToOthers(stats)
      ? 'is open to others: take their rights away (chmod o-rwx)'
      : bytes.length < leastBytes
        ? `holds fewer than ${leastBytes} bytes`
        : bytes.length > mostBytes
          ? `holds more than ${mostBytes} bytes`
          : null;
    return problem === null ? { ok: true, key: bytes.toString('base64') } : { ok: false, problem };
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    return { ok: false, problem: `cannot be read (${code ?? message})` };
  }
}
