// The promise of problem details: the statuses of the contract, whether to repeat, and the object's shape.
// Must not need a gateway.
import assert from 'node:assert/strict';
import { STATUS_CODES } from 'node:http';
import { test } from 'node:test';
import {
  type FailureCode,
  type FailureFacts,
  failureCodes,
  failures,
  mysqlFailures,
} from '../../../../../src/shared/failure-codes.ts';
import {
  problemHead,
  problemJson,
  renderProblem,
} from '../../../../../src/worker/encode/formats/problem.ts';
import { type Outcome, refusal } from '../../../../../src/worker/failure/failure.ts';
import { serverFailure } from '../../../../../src/worker/failure/server-failure.ts';

const outcomes: readonly Outcome[] = [
  'not_executed',
  'failed',
  'partial',
  'rolled_back',
  'unknown',
];

const write = { isReadOnly: false, isRead: false };
const read = { isReadOnly: false, isRead: true };

/** An error with the message that servers have for it, where that matters. */
const serverError = (errno: number, message = 'refused') => ({ errno, sqlState: 'HY000', message });

const optionError = (option: string) =>
  serverError(
    1290,
    `The MariaDB server is running with the ${option} option so it cannot execute this statement`,
  );

const refused = (
  error: Parameters<typeof serverFailure>[0],
  outcome: Outcome = 'failed',
  work = write,
) => serverFailure(error, work, outcome);

const statusOf = (errno: number) => refused(serverError(errno)).status;

test("gives each of MySQL's errors the status that is promised", () => {
  const promised: Readonly<Record<number, readonly number[]>> = {
    403: [1044, 1142, 1143, 1227],
    409: [1062, 1216, 1217, 1451, 1452, 1213, 1205, 1020],
    413: [1153],
    503: [1040, 1203, 1226, 1045, 1047, 1836, 3100],
    504: [1317, 3024, 1969],
  };
  const named = new Set(Object.values(promised).flat());
  for (const [status, numbers] of Object.entries(promised)) {
    for (const errno of numbers) assert.equal(statusOf(errno), Number(status), `${errno}`);
  }
  const others = Array.from({ length: 5000 }, (_, errno) => errno).filter(
    (errno) => !named.has(errno) && errno !== 1792,
  );
  for (const errno of others) assert.equal(statusOf(errno), 422, `${errno}`);
});

test('tells a write that a read-only request may not do from a server that has become read-only', () => {
  const asked = refused(serverError(1792), 'failed', { ...write, isReadOnly: true });
  assert.deepEqual([asked.status, asked.mayRepeat], [403, false]);
  const unasked = refused(serverError(1792));
  assert.deepEqual([unasked.status, unasked.mayRepeat], [503, true]);
  for (const option of ['--read-only', '--super-read-only', '--innodb-read-only', 'read_only']) {
    const { status, mayRepeat } = refused(optionError(option));
    assert.deepEqual([status, mayRepeat], [503, true], option);
  }
  for (const option of ['--secure-file-priv', '--skip-grant-tables']) {
    const { status, mayRepeat } = refused(optionError(option));
    assert.deepEqual([status, mayRepeat], [422, false], option);
  }
});

test('sends a client again that a group’s former primary has turned out, and none with what MariaDB calls 4094', () => {
  // The text of MySQL 9.7.
  const text =
    "All queries have been blocked while function 'group_replication_set_as_primary()' is executing. Please refer timeout parameter of function 'group_replication_set_as_primary()'.";
  const blocked = refused(serverError(4094, text));
  assert.deepEqual([blocked.status, blocked.mayRepeat, blocked.retryAfterSeconds], [503, true, 1]);
  const other = refused(serverError(4094));
  assert.deepEqual([other.status, other.mayRepeat], [422, false]);
});

test('sends a client back after a second with every 503, and with nothing else', () => {
  for (const { errno } of mysqlFailures) {
    const { status, retryAfterSeconds } = refused(serverError(errno));
    assert.equal(retryAfterSeconds, status === 503 ? 1 : undefined, `${errno}`);
  }
});

/** Whether a refused request may be repeated, with each outcome: as a write, and where it only read. */
function repeatable(errno: number): readonly string[] {
  return Object.entries({ write, read }).flatMap(([kind, work]) =>
    outcomes
      .filter((outcome) => refused(serverError(errno), outcome, work).mayRepeat)
      .map((outcome) => `${kind} ${outcome}`),
  );
}

test('calls retryable what MySQL has undone or not begun, unless more of the request stands', () => {
  const safe = ['not_executed', 'failed', 'rolled_back'];
  const expected = [...safe.map((one) => `write ${one}`), ...safe.map((one) => `read ${one}`)];
  const undone = [1213, 1205, 1020, 1412, 3101, 3572];
  for (const errno of [...undone, 1040, 1203, 1226, 1045, 1047, 1836, 3024, 3100]) {
    assert.deepEqual(repeatable(errno), expected, `${errno}`);
  }
});

test('calls an interrupted statement retryable only where nothing can have been applied', () => {
  for (const errno of [1317, 1969, 1053, 1927]) {
    assert.deepEqual(
      repeatable(errno),
      [
        'write not_executed',
        'write rolled_back',
        'read not_executed',
        'read failed',
        'read rolled_back',
      ],
      `${errno}`,
    );
  }
});

test('never calls retryable what would be refused again', () => {
  const again = [1044, 1142, 1143, 1227, 1062, 1216, 1217, 1451, 1452, 1153, 1064, 1146, 1180];
  for (const errno of again) assert.deepEqual(repeatable(errno), [], `${errno}`);
});

const requestId = 'r-1';

test("tells MySQL's error in the promised order", () => {
  const error = {
    errno: 1062,
    sqlState: '23000',
    message: "Duplicate entry '7' for key 'PRIMARY'",
  };
  const failure = refused(error);
  assert.match(problemHead(failure).lines, /^Content-Type: application\/problem\+json\r\n/);
  const body = problemJson(failure, requestId);
  assert.equal(
    body,
    `{"type":"about:blank","title":"Conflict","status":409,"detail":"Duplicate entry '7' for key 'PRIMARY'","code":"ER_DUP_ENTRY",` +
      `"errno":1062,"sqlstate":"23000","retryable":false,"outcome":"failed","request_id":"r-1"}`,
  );
});

test("tells a failure of the gateway's own without a number of MySQL's", () => {
  const { contentType, body } = renderProblem(refusal('QUEUE_FULL', 'Too many.'), requestId);
  assert.equal(contentType, 'application/problem+json');
  assert.equal(
    body,
    '{"type":"about:blank","title":"Service Unavailable","status":503,"detail":"Too many.","code":"QUEUE_FULL",' +
      '"retryable":true,"outcome":"not_executed","request_id":"r-1"}',
  );
});

test('tells the statement of a batch, and where in a text', () => {
  const batch = serverFailure(serverError(1213), write, 'rolled_back', { statement: 0 });
  const told = JSON.parse(problemJson(batch, requestId));
  assert.deepEqual([told.statement, told.outcome, told.retryable], [0, 'rolled_back', true]);
  assert.equal('offset' in told, false);
  const own = { ...refusal('BAD_KEY', 'Two.'), place: { offset: 9 } };
  const failed = JSON.parse(renderProblem(own, requestId).body);
  assert.equal(failed.offset, 9);
  assert.equal('statement' in failed, false);
});

test('keeps to one line of UTF-8, whatever a message holds', () => {
  const error = serverError(1064, "near '\n\"\u2028\ud800' at line 1");
  const body = problemJson(refused(error), requestId);
  assert.equal(body.includes('\n'), false);
  assert.equal(Buffer.from(body).toString(), body);
  assert.equal(JSON.parse(body).detail, error.message);
});

const own = (code: FailureCode, outcome: Outcome): boolean =>
  JSON.parse(problemJson({ ...refusal(code, 'no'), outcome }, requestId)).retryable;

test("calls the gateway's own failures retryable by their table and their outcome", () => {
  for (const code of failureCodes) {
    const { repeat }: FailureFacts = failures[code];
    const mayBe = repeat === 'yes' || repeat === 'outcome';
    for (const outcome of outcomes) {
      const isSafe = outcome !== 'partial' && outcome !== 'unknown';
      assert.equal(own(code, outcome), mayBe && isSafe, `${code} ${outcome}`);
    }
  }
  assert.equal(own('STOPPING', 'unknown'), false, 'a write that a stop cut off');
  assert.equal(own('DEADLINE_RUNNING', 'failed'), true, 'a read that took too long');
  assert.equal(own('RESULT_TOO_LARGE', 'failed'), false, 'it would be as large again');
  assert.equal(own('PARAMS_COUNT', 'not_executed'), false, 'it must be mended');
});

/** Phrases of RFC 9110 that node still has by their names of RFC 4918 and RFC 7231. */
const renamed: Readonly<Record<number, string>> = {
  413: 'Content Too Large',
  422: 'Unprocessable Content',
  499: 'Client Closed Request',
};

test('gives every status its standard title', () => {
  const facts: readonly FailureFacts[] = Object.values(failures);
  const ours = facts.flatMap(({ status, sentStatus }) => [status, sentStatus ?? status]);
  for (const status of new Set([...ours, ...mysqlFailures.map((one) => one.status)])) {
    const { title } = JSON.parse(
      renderProblem({ ...refusal('INTERNAL', 'no'), status }, requestId).body,
    );
    assert.equal(title, renamed[status] ?? STATUS_CODES[status], `${status}`);
  }
});
