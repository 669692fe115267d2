// Known differences: requests that the gateway accepts and another reader refuses, each with its reason.

type Known = {
  readonly reader: 'node' | 'haproxy';
  readonly reason: string;
  readonly applies: (text: string) => boolean;
};

const known: readonly Known[] = [
  {
    reader: 'node',
    reason: 'a tab around a length: RFC 9110 allows it (section 5.5), node does not',
    applies: (text) =>
      /content-length:(?:[ ]*\t[ \t]*\d+[ \t]*|[ \t]*\d+[ ]*\t[ \t]*)\r/i.test(text),
  },
  {
    reader: 'node',
    reason: 'a tab behind a coding: RFC 9110 allows it (section 5.5), node does not',
    applies: (text) => /transfer-encoding:[ \t]*chunked[ ]*\t[ \t]*\r/i.test(text),
  },
  {
    reader: 'node',
    reason:
      'a space behind keep-alive in HTTP/1.0: for node it is another word, and the connection ends',
    applies: (text) => /HTTP\/1\.0\r\n(?:.+\r\n)*connection:.*[ \t]\r/i.test(text),
  },
  {
    reader: 'haproxy',
    reason: 'a # in the target: it belongs to the JSON text of a URL, and haproxy wants none',
    applies: (text) => /[A-Z]+ \/[^ \r\n]*#/.test(text),
  },
  {
    reader: 'haproxy',
    reason: 'a body of GET in HTTP/1.0: haproxy refuses it, because some servers do not read it',
    applies: (text) => /(?:GET|HEAD|DELETE) .*HTTP\/1.0\r\n(?:.+\r\n)*content-length/i.test(text),
  },
];

/** The reason for which a reader may refuse or misread a stream; null: there is none. */
export function knownDifference(reader: Known['reader'], text: string): string | null {
  const found = known.find((one) => one.reader === reader && one.applies(text));
  return found === undefined ? null : `${found.reader}: ${found.reason}`;
}
