// The observers of each request, for measurements of their cost.

/** `counting`: metrics and digests, which are always there; `observing`: the logs too. */
export type ObserverSet = 'counting' | 'observing';

export function isObserverSet(text: string | undefined): text is ObserverSet {
  return text === 'counting' || text === 'observing';
}
