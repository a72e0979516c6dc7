// The payloads of agents: a small grammar, from well-formed proposals to bytes that are not text.

import type { Random } from './random.js';

const NAMES = ['a.txt', 'a.txt', 'b.txt', 'b.txt', 'c.md', 'd/e.txt', 'd/e.txt', 'nowhere/g.txt'];
const PATHS = NAMES.map((name) => `/sandbox/${name}`);
const FOLDERS = ['/sandbox/', '/sandbox/d', '/sandbox/d/', '/sandbox/d', '/sandbox/nowhere/h'];
const OUTSIDE = ['/etc/passwd', '/sandbox/../x.txt', '/sandbox/d/../../y.txt', '/sandbox//a.txt', 'a.txt', '/sandbox/'];
const WRONG_NAMES = ['/sandbox/run.sh', '/sandbox/a.TXT', '/sandbox/.turnpike-x', '/sandbox/plain', '/sandbox/a\u0000'];

/** Actions and their purposes: the weights let most runs live for several steps. */
const ACTIONS = {
  WRITE_FILE: 26,
  READ_FILE: 14,
  LIST_FILES: 8,
  CREATE_DIRECTORY: 10,
  DELETE_FILE: 8,
  RENAME_FILE: 10,
  THINK: 8,
  FINISH: 2,
  SHELL: 1,
  constructor: 1,
} as const;
const FORMS = { good: 70, 'bad path': 6, 'bad name': 5, 'bad args': 4, 'bad envelope': 6, 'no json': 5, 'no text': 2 };

/** One raw payload. `id` is the id of the proposal, if it has one. */
export function payload(random: Random, id: string): Uint8Array {
  const form = random.weighted<keyof typeof FORMS>(FORMS);
  const action = random.weighted<keyof typeof ACTIONS>(ACTIONS);
  const args = form === 'bad args' ? badArgs(random) : argsOf(random, action, form);
  const proposal = { schema_version: '1.0.0', id, reasoning: `thought ${random.below(1_000_000)}`, action, args };
  switch (form) {
    case 'bad envelope':
      return Buffer.from(JSON.stringify(badEnvelope(random, proposal)));
    case 'no json':
      return Buffer.from(random.pick(['', '   ', '{', '[1,', '{"a":1,"a":2}', `${JSON.stringify(proposal)} x`]));
    case 'no text':
      return Uint8Array.from([0xff, 0xfe, random.below(256), 0x00]);
    default:
      return Buffer.from(JSON.stringify(proposal));
  }
}

/** A proposal that writes one of the files. */
export const writing = (random: Random, id: string): Uint8Array =>
  Buffer.from(
    JSON.stringify({
      ...{ schema_version: '1.0.0', id, reasoning: 'To write it.', action: 'WRITE_FILE' },
      args: argsOf(random, 'WRITE_FILE', 'good'),
    }),
  );

function argsOf(random: Random, action: string, form: string): Record<string, unknown> {
  const wrong = form === 'bad path' ? OUTSIDE : form === 'bad name' ? WRONG_NAMES : null;
  const path = (): string => random.pick(wrong ?? PATHS);
  switch (action) {
    case 'THINK':
      return {};
    case 'FINISH':
      return { response: 'The work is done.' };
    case 'WRITE_FILE':
      return { path: path(), content: `text ${random.below(1_000)}`.repeat(1 + random.below(3)) };
    case 'LIST_FILES':
    case 'CREATE_DIRECTORY':
      return { path: wrong === null ? random.pick(FOLDERS) : path() };
    case 'RENAME_FILE':
      return { source: path(), destination: random.pick(PATHS) };
    default:
      return { path: path() };
  }
}

const badArgs = (random: Random): unknown =>
  random.pick<unknown>([null, [], 'path', { path: 7 }, { path: '/sandbox/a.txt', more: true }, { content: '' }]);

function badEnvelope(random: Random, proposal: Record<string, unknown>): unknown {
  const { reasoning, ...rest } = proposal;
  return random.pick<unknown>([
    rest,
    { ...proposal, reasoning: '' },
    { ...proposal, id: 'no uuid' },
    { ...proposal, schema_version: '2.0.0' },
    { ...proposal, run_id: 'run_000000000000000000001' },
    [proposal],
    reasoning,
  ]);
}
