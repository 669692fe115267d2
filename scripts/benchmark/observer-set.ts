// Who looks at each request while what that costs is measured.

/** `counting`: metrics and digests, which are always there; `observing`: the logs too. */
export type ObserverSet = 'counting' | 'observing';

export function isObserverSet(text: string | undefined): text is ObserverSet {
  return text === 'counting' || text === 'observing';
}
