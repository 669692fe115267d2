// An error of MySQL's as a failure: the status and the advice on repetition are those of the table of errors. Pure.
import {
  type MysqlFailure,
  type MysqlFailureFacts,
  mysqlFailures,
  otherMysqlFailure,
} from '../../shared/failure-codes.ts';
import type { ServerError } from '../../shared/mysql/packets.ts';
import { appliedNothing, type Outcome, type Place, type ServerFailure } from './failure.ts';

/** The facts on which the meaning of an error depends. */
export type RefusedWork = {
  /** Whether it was to run READ ONLY, by the request's wish or the section's. */
  readonly isReadOnly: boolean;
  /** Whether it did nothing but read, so that no end of it can have changed anything. */
  readonly isRead: boolean;
};

/** @param outcome of the whole request */
export function serverFailure(
  error: ServerError,
  work: RefusedWork,
  outcome: Outcome,
  place: Place | null = null,
): ServerFailure {
  const { status, repeat } = findFacts(error, work);
  const isHarmless = repeat === 'yes' || work.isRead || outcome !== 'failed';
  return {
    status,
    code: null,
    error,
    isAlone: false,
    message: error.message,
    outcome,
    mayRepeat: repeat !== 'no' && appliedNothing[outcome] && isHarmless,
    ...(status === 503 && { retryAfterSeconds: 1 }),
    ...(place !== null && { place }),
  };
}

function findFacts(error: ServerError, work: RefusedWork): MysqlFailureFacts {
  const found = mysqlFailures.find(
    ({ errno, when }) => errno === error.errno && isMet(when, error, work),
  );
  return found ?? otherMysqlFailure;
}

function isMet(
  when: MysqlFailure['when'],
  { message }: ServerError,
  { isReadOnly }: RefusedWork,
): boolean {
  switch (when) {
    case undefined:
      return true;
    case 'the request is read-only':
      return isReadOnly;
    case 'the server is read-only':
      return readOnlyOption.test(message);
    case 'a group switches its primary':
      return message.includes(primarySwitch);
    default:
      return when satisfies never;
  }
}

/** 1290 names the option that forbids the statement, in every language; --secure-file-priv is another one. */
const readOnlyOption = /read[-_]only/;

/** MySQL's 4094 names the function, in every language; MariaDB has the number for something else. */
const primarySwitch = 'group_replication_set_as_primary';
