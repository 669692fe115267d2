// Why a run is stopped from outside.

/** Why a run was stopped. `server left`: it begins again at another server; no reply says so. */
export type StopReason =
  | 'deadline'
  | 'client gone'
  | 'stalled'
  | 'too large'
  | 'too wide'
  | 'killed'
  | 'server left'
  | 'stopping';
