// A small machine of XState 5, with a secret in its context that no viewer may see.

import { assign, createMachine } from 'xstate';

export const SECRET = 'nobody-is-to-see-this';

export const lamp = createMachine({
  id: 'lamp',
  initial: 'off',
  context: { secret: SECRET, switched: 0 },
  states: {
    off: {
      on: { SWITCH: { target: 'on', actions: assign({ switched: ({ context }) => context.switched + 1 }) } },
    },
    on: { on: { SWITCH: 'gone' } },
    gone: { type: 'final' },
  },
});
