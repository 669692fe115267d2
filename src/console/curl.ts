// A question as the command line that asks it.
// Pure. Must not know the page, nor any token.

/** Where it is asked, and whether a token is needed there. */
export type Place = { readonly origin: string; readonly needsToken: boolean };

/** The command, for a shell. The token is one of the shell's variables: it is not for logs and histories. */
export function formatCurl({ origin, needsToken }: Place, body: string): string {
  const parts = ['curl -sS', quote(`${origin}/v1/query`), "-H 'Content-Type: application/json'"];
  if (needsToken) parts.push('-H "Authorization: Bearer $DBHTTPD_TOKEN"');
  parts.push('--data-raw', quote(body));
  return parts.join(' ');
}

function quote(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}
