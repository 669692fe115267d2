// Problem details: the object's shape, whether to repeat the gateway's own failures, and titles.
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

/** An error with the message that servers have for it. */
const serverError = (errno: number, message = 'refused') => ({ errno, sqlState: 'HY000', message });

const refused = (error: Parameters<typeof serverFailure>[0]) =>
  serverFailure(error, write, 'failed');

const requestId = 'r-1';

test("an error of MySQL's has the promised members in their order", () => {
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

test("a failure of the gateway's own has no number of MySQL's", () => {
  const { contentType, body } = renderProblem(refusal('QUEUE_FULL', 'Too many.'), requestId);
  assert.equal(contentType, 'application/problem+json');
  assert.equal(
    body,
    '{"type":"about:blank","title":"Service Unavailable","status":503,"detail":"Too many.","code":"QUEUE_FULL",' +
      '"retryable":true,"outcome":"not_executed","request_id":"r-1"}',
  );
});

test('a problem names the statement of a batch, and the place in a text', () => {
  const batch = serverFailure(serverError(1213), write, 'rolled_back', { statement: 0 });
  const problem = JSON.parse(problemJson(batch, requestId));
  assert.deepEqual(
    [problem.statement, problem.outcome, problem.retryable],
    [0, 'rolled_back', true],
  );
  assert.equal('offset' in problem, false);
  const own = { ...refusal('BAD_KEY', 'Two.'), place: { offset: 9 } };
  const failed = JSON.parse(renderProblem(own, requestId).body);
  assert.equal(failed.offset, 9);
  assert.equal('statement' in failed, false);
});

test('a problem is one line of UTF-8, with any message', () => {
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
  assert.equal(own('PARAMS_COUNT', 'not_executed'), false, 'the request must change');
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
