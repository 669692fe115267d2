// What one worker counts of one section, as plain numbers.
// Must not know its servers, nor who asks.
import { outcomes, type RequestOutcome, unreadyCodes } from '../../shared/failure-codes.ts';
import { DurationHistogram } from '../../shared/observe/duration-histogram.ts';
import {
  type HistogramSample,
  type RequestPhase,
  requestPhases,
  type Sample,
  workerMetrics,
} from '../../shared/observe/metrics.ts';
import {
  type TransactionEnd,
  transactionEnds,
} from '../execution/transactions/held-transaction.ts';
import type { ReadyAnswer } from '../servers/pool/readiness.ts';
import type { ExchangeSummary } from './exchange-summary.ts';
import { sample, startAtZero } from './samples.ts';
import { isSlow } from './slow-statements.ts';

const { buckets } = workerMetrics.dbhttpd_request_duration_seconds;
const phaseBuckets = workerMetrics.dbhttpd_phase_duration_seconds.buckets;

/** Counters of one section. Everything is a field or a typed array, read only when a snapshot is asked for. */
export class SectionMetrics {
  readersGivenUp = 0;
  #rows = 0;
  #replyBytes = 0;
  #queueSeconds = 0;
  #clientsGone = 0;
  #slowStatements = 0;
  #cutReplies = 0;
  readonly #section: string;
  readonly #slowMs: number;
  readonly #durations = new DurationHistogram(buckets);
  readonly #phases: Readonly<Record<RequestPhase, DurationHistogram>> = {
    waiting: new DurationHistogram(phaseBuckets),
    connecting: new DurationHistogram(phaseBuckets),
    first_row: new DurationHistogram(phaseBuckets),
  };
  readonly #outcomes = startAtZero(outcomes);
  readonly #transactionEnds = startAtZero(transactionEnds);

  /** @param slowMs the running time from which statements are slow; 0: none is */
  constructor(section: string, slowMs: number) {
    this.#section = section;
    this.#slowMs = slowMs;
  }

  /** To be told of each request's statements when they are over. */
  count(summary: ExchangeSummary): void {
    if (isSlow(summary, this.#slowMs)) this.#slowStatements += 1;
    if (summary.clientGone) this.#clientsGone += 1;
    if (summary.wasCut) this.#cutReplies += 1;
    this.#rows += summary.rows;
    this.#replyBytes += summary.bytes;
    this.#queueSeconds += summary.queueMs / 1000;
    this.#countOutcome(summary.outcome);
    // A refusal is no latency of what was served: thousands of quick ones would make an overload look fast.
    if (summary.outcome === 'not_executed') return;
    this.#durations.observe(summary.durationMs / 1000);
    this.#countPhases(summary);
  }

  /** To be told of each transaction that a client held, when it has ended. */
  transactionEnded(end: TransactionEnd): void {
    this.#transactionEnds.set(end, (this.#transactionEnds.get(end) ?? 0) + 1);
  }

  #countOutcome(outcome: RequestOutcome): void {
    this.#outcomes.set(outcome, (this.#outcomes.get(outcome) ?? 0) + 1);
  }

  /** A part that a request did not have is not one of 0 s. */
  #countPhases({ queueMs, connectingMs, databaseMs, firstRowMs }: ExchangeSummary): void {
    this.#phases.waiting.observe((queueMs - connectingMs) / 1000);
    if (connectingMs > 0) this.#phases.connecting.observe(connectingMs / 1000);
    if (databaseMs > 0) this.#phases.first_row.observe(firstRowMs / 1000);
  }

  /** @param coalesced requests that were answered by the execution of another one */
  samples(readiness: ReadyAnswer, coalesced: number): readonly Sample[] {
    const section = this.#section;
    const reason = readiness.isReady ? null : readiness.code;
    return [
      ...[...this.#outcomes].map(([outcome, value]) =>
        sample('dbhttpd_outcomes_total', value, { section, outcome }),
      ),
      ...[...this.#transactionEnds].map(([end, value]) =>
        sample('dbhttpd_transactions_ended_total', value, { section, end }),
      ),
      sample('dbhttpd_replies_cut_total', this.#cutReplies, { section }),
      sample('dbhttpd_readers_given_up_total', this.readersGivenUp, { section }),
      sample('dbhttpd_rows_total', this.#rows, { section }),
      sample('dbhttpd_reply_bytes_total', this.#replyBytes, { section }),
      sample('dbhttpd_queue_seconds_total', this.#queueSeconds, { section }),
      sample('dbhttpd_clients_gone_total', this.#clientsGone, { section }),
      sample('dbhttpd_slow_statements_total', this.#slowStatements, { section }),
      sample('dbhttpd_coalesced_requests_total', coalesced, { section }),
      sample('dbhttpd_ready', readiness.isReady ? 1 : 0, { section }),
      ...unreadyCodes.map((code) =>
        sample('dbhttpd_unready', code === reason ? 1 : 0, { section, reason: code }),
      ),
    ];
  }

  histograms(): readonly HistogramSample[] {
    const section = this.#section;
    return [
      {
        metric: 'dbhttpd_request_duration_seconds',
        labels: { section },
        ...this.#durations.read(),
      },
      ...requestPhases.map(
        (phase): HistogramSample => ({
          metric: 'dbhttpd_phase_duration_seconds',
          labels: { section, phase },
          ...this.#phases[phase].read(),
        }),
      ),
    ];
  }
}
