// A request is observed as finished once, whether its reply or its statements end first.
import assert from 'node:assert/strict';
import test from 'node:test';
import { OutgoingReply } from '../../../../src/worker/http/reply.ts';
import { RequestRecord, type StatementTimes } from '../../../../src/worker/observe/observation.ts';
import { incomingRequest } from '../../../support/incoming.ts';

const statements: StatementTimes = { outcome: 'failed', rows: 0, queueMs: 0, databaseMs: 0 };

function begin() {
  let times = 0;
  const request = incomingRequest();
  const { socket } = request;
  const connection = { socket, isForwarded: false, keepAliveLines: '', replied: () => {} };
  const head = { requestId: 'a', endpoint: 'db', path: '/db', trace: null, origin: null } as const;
  const record = new RequestRecord(request, new OutgoingReply(request, connection), head, {
    needsAddresses: false,
    observe: ({ kind }) => {
      if (kind === 'request finished') times += 1;
    },
  });
  return { record, times: () => times };
}

test('a request whose statements end because its client has gone finishes once', () => {
  const { record, times } = begin();
  record.statementsBegin();
  record.statementsEnded(statements);
  record.closed();
  assert.equal(times(), 1);
});

test('a request whose statements outlast its client finishes with them', () => {
  const { record, times } = begin();
  record.statementsBegin();
  record.closed();
  assert.equal(times(), 0);
  record.statementsEnded(statements);
  assert.equal(times(), 1);
});
