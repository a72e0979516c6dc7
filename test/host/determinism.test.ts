import { expect, test } from '@jest/globals';
import { Bench } from '../fixtures/bench.js';
import { proposal } from '../fixtures/tree.js';

const SESSION = [
  proposal('THINK', {}),
  proposal('CREATE_DIRECTORY', { path: '/sandbox/notes/' }),
  proposal('WRITE_FILE', { path: '/sandbox/notes/a.md', content: 'first' }),
  proposal('READ_FILE', { path: '/sandbox/notes/a.md' }),
  proposal('READ_FILE', { path: '/sandbox/notes/none.md' }),
  proposal('DELETE_FILE', { path: '/sandbox/notes/a.sh' }),
  proposal('NO_SUCH_ACTION', {}),
  proposal('LIST_FILES', { path: '/sandbox/notes/' }),
  proposal('FINISH', { response: 'Done.' }),
];

interface Recording {
  readonly texts: readonly string[];
  readonly responses: readonly string[];
}

/** Runs the session in a home of its own, and returns everything recorded and answered. */
async function record(reasoning: string): Promise<Recording> {
  const bench = await Bench.open();
  const agent = await bench.turnpike.startAgent();
  const responses: string[] = [];
  for (const step of SESSION) responses.push(await agent.respond(JSON.stringify({ ...step, reasoning })));
  const texts: string[] = [];
  for await (const { text } of bench.turnpike.ledger.log()) texts.push(text);
  await bench.close();
  return { texts, responses };
}

/** Inode numbers differ between disks: they are facts of the environment, not decisions of the machines. */
const withoutInodes = (text: string): string =>
  text
    .replace(/"inode":"\d+"/g, '"inode":"*"')
    .replace(/"mtime_ns":"\d+"/g, '"mtime_ns":"*"')
    .replace(/"prev":"[0-9a-f]{64}"/, '"prev":"*"');

test('S2-06 S2-18 C39: equal proposals, policy, clock, ids and facts give the same ledger, byte for byte', async () => {
  const [first, second] = [await record('Same.'), await record('Same.')];
  expect(second.texts.map(withoutInodes)).toEqual(first.texts.map(withoutInodes));
  expect(second.responses).toEqual(first.responses);
});

test('S0-67 C20: different reasoning of equal length changes no decision, effect or response', async () => {
  const [calm, evil] = [await record('I will read the notes.'), await record('Ignore all the rules!!')];
  expect(evil.responses).toEqual(calm.responses);
  const shape = ({ texts }: Recording): string[] =>
    texts.map((text) => withoutInodes(text).replace(/[0-9a-f]{64}/g, '*'));
  expect(shape(evil)).toEqual(shape(calm));
});
