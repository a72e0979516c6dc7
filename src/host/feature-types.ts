// The modules that add types to the public object and to options. They have no code at run time. To remove a feature
// that is listed here, remove its lines here too.

export type {} from '../features/hooks/gate/hook-gate.js';
export type {} from '../features/sessions/checks/run-review.js';
export type {} from '../features/sessions/sessions.js';
