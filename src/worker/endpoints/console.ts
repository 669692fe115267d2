// /console: serves the page and its files from memory.
import { sendText } from '../http/failure-reply.ts';
import type { Handler } from './endpoint.ts';

/** The page's files by name; `index.html` is the page. */
export type ConsoleFiles = ReadonlyMap<string, string>;

const page = 'index.html';

const contentTypes: Readonly<Record<string, string>> = {
  html: 'text/html; charset=utf-8',
  css: 'text/css; charset=utf-8',
  js: 'text/javascript; charset=utf-8',
};

/** The page loads and calls its own origin alone, and no other page may frame it. */
const policy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ');

/** Whether a file of this name is served. */
export function isConsoleFile(name: string): boolean {
  return extensionOf(name) in contentTypes;
}

/** A path, its access, and its file. */
type ConsolePath = {
  readonly path: string;
  readonly access: 'page' | 'file';
  readonly file: readonly [name: string, text: string];
};

/** Every path of the console; none if the build has no page. */
export function consolePaths(files: ConsoleFiles | null): readonly ConsolePath[] {
  return [...(files ?? [])].flatMap(([name, text]): ConsolePath[] => {
    const file = [name, text] as const;
    if (name !== page) return [{ path: `/console/${name}`, access: 'file', file }];
    return ['/console', '/console/'].map((path) => ({ path, access: 'page', file }));
  });
}

/** Creates the handler of one file. */
export function createConsoleFile([name, text]: ConsolePath['file']): Handler {
  const contentType = contentTypes[extensionOf(name)];
  return (_request, response, _head, { requestId }) => {
    response.addHeaders([
      ...['X-Request-ID', requestId],
      ...['Content-Security-Policy', policy],
      ...['Referrer-Policy', 'no-referrer'],
    ]);
    sendText(response, text, contentType);
  };
}

function extensionOf(name: string): string {
  return name.slice(name.lastIndexOf('.') + 1);
}
