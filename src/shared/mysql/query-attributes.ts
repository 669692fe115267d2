// Query attributes of MySQL 8.0.23 and later: how a statement is sent where they were negotiated, and with the one that is used.
// Pure. Must not know how they are negotiated.
import { commandCodes, encodeWithHead } from './command-packets.ts';

/** One attribute, not NULL: name and text. What stands before the statement (COM_QUERY, "if CLIENT_QUERY_ATTRIBUTES is set"). */
const traceparentHead = Buffer.concat([
  Buffer.from([commandCodes.query]),
  // parameter_count, parameter_set_count, null_bitmap, new_params_bind_flag
  Buffer.from([1, 1, 0, 1]),
  // MYSQL_TYPE_STRING, signed
  Buffer.from([0xfe, 0]),
  Buffer.from([11]),
  Buffer.from('traceparent'),
]);
/** Where they were not negotiated. */
const bareHead = Buffer.from([commandCodes.query]);
/** No attribute: parameter_count 0, parameter_set_count 1. */
const emptyHead = Buffer.from([commandCodes.query, 0, 1]);
/** From here on a length takes more than a byte. */
const mostAttributeBytes = 250;

/** How many bytes a statement's command has beside its text. @param traceparent null: it carries none */
export function queryHeadBytes(hasQueryAttributes: boolean, traceparent: string | null): number {
  if (!hasQueryAttributes) return bareHead.length;
  return traceparent === null ? emptyHead.length : traceparentHead.length + 1 + traceparent.length;
}

/**
 * A statement as the packets to write.
 * @param hasQueryAttributes whether they were negotiated: then each statement says which it has
 * @param traceparent ASCII, up to 250 characters: the attribute of that name; not sent where they were not negotiated
 */
export function encodeQuery(
  sql: string,
  hasQueryAttributes: boolean,
  traceparent: string | null,
): Buffer {
  if (!hasQueryAttributes) return encodeWithHead(bareHead, sql);
  return encodeWithHead(traceparent === null ? emptyHead : headWith(traceparent), sql);
}

function headWith(traceparent: string): Buffer {
  if (traceparent.length > mostAttributeBytes) throw new RangeError('a traceparent is too long');
  const length = Buffer.from([traceparent.length]);
  return Buffer.concat([traceparentHead, length, Buffer.from(traceparent, 'latin1')]);
}
