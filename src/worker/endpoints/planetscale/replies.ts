// The replies to one request of a driver's: without a result, or in the format of a statement's.
// Must not know what is answered.
import { chooseFoundRows } from '../../../shared/sql/found-rows.ts';
import type { FormatChoice } from '../../encode/format.ts';
import { chooseDriverJson } from '../../encode/formats/driver.ts';
import { jsonType } from '../../encode/head.ts';
import type { ResultHeads, RowLimits } from '../../encode/result-rows.ts';
import type { OutgoingReply } from '../../http/reply.ts';
import type { RequestRecord } from '../../observe/observation.ts';
import { sendText } from '../send-text.ts';
import type { DriverSession, DriverSessions } from './session.ts';

/** What the replies of one section have in common. */
export type ReplySettings = {
  readonly sessions: DriverSessions;
  readonly heads: ResultHeads;
  readonly limits: RowLimits;
};

/** Answers one request. */
export class DriverReplies {
  readonly #settings: ReplySettings;
  readonly #response: OutgoingReply;
  readonly #record: RequestRecord;

  constructor(settings: ReplySettings, response: OutgoingReply, record: RequestRecord) {
    this.#settings = settings;
    this.#response = response;
    this.#record = record;
  }

  /** A statement that has no result, and has succeeded. @param session as it is from now on */
  done(session: DriverSession): void {
    this.#send(`{"result":{},"timing":0,"session":${this.#settings.sessions.encode(session)}}`);
  }

  /** A session, and nothing else. */
  opened(session: DriverSession): void {
    this.#send(`{"session":${this.#settings.sessions.encode(session)}}`);
  }

  /**
   * The format of a statement's reply. Its rows are counted as PlanetScale's sessions have it, with `clientFoundRows`.
   * @param sql null: it is one of the gateway's own
   * @param session as it is after the statement; asked for when the reply ends
   */
  format(sql: string | null, session: () => DriverSession): FormatChoice {
    const { sessions, heads, limits } = this.#settings;
    return chooseDriverJson({
      ...limits,
      heads,
      rowModule: null,
      countRows: chooseFoundRows(sql ?? ''),
      session: () => sessions.encode(session()),
    });
  }

  #send(text: string): void {
    this.#response.setHeader('X-Request-ID', this.#record.requestId);
    sendText(this.#response, text, jsonType);
  }
}
