// The sessions of a service, which the first call loads.

import type { Sessions } from '../features/sessions/sessions.js';

export const lazySessions = (part: { get(): Promise<Sessions> }): Sessions => ({
  start: async (...call) => (await part.get()).start(...call),
  next: async (...call) => (await part.get()).next(...call),
  replay: async (...call) => (await part.get()).replay(...call),
  heartbeat: async (...call) => (await part.get()).heartbeat(...call),
  verify: async (...call) => (await part.get()).verify(...call),
  review: async (...call) => (await part.get()).review(...call),
  pause: async (...call) => (await part.get()).pause(...call),
  resume: async (...call) => (await part.get()).resume(...call),
  end: async (...call) => (await part.get()).end(...call),
  rebase: async (...call) => (await part.get()).rebase(...call),
  waive: async (...call) => (await part.get()).waive(...call),
  status: async (...call) => (await part.get()).status(...call),
  prepare: async (...call) => (await part.get()).prepare(...call),
  list: async (...call) => (await part.get()).list(...call),
});
