// `npm start`: a careful agent works on a case, a hostile one attacks it, and both do at once. Then the ledger is
// verified and replayed. Exits with 0 only if every step, file and run is as expected.
//
//   node docs/examples/start.mjs [FOLDER]      a new or empty folder; default: a new one among the temporary files

import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { buildIfNeeded } from './demo/build.mjs';
import { filesOf, layOut, mix, readHostile, readSession, SECRET } from './demo/material.mjs';
import { countLine, paint, paragraph, say, stepLine, treeLines, visible } from './demo/print.mjs';

/** Every deviation from the expected result. */
const surprises = [];
const expect = (holds, what) => void (holds || surprises.push(what));

async function main() {
  const folder = newFolder(process.argv[2]);
  const built = buildIfNeeded(say);
  if (built !== null) say(`built in ${(built / 1000).toFixed(1)} s`);
  const { openTurnpike } = await import('../../dist/src/index.js');
  const turnpike = await openTurnpike({
    home: join(folder, 'home'),
    // Only Linux isolates files without races; a demonstration may run elsewhere all the same.
    unsafe: process.platform !== 'linux',
  });
  try {
    await demonstrate(turnpike, join(folder, 'outside'));
  } finally {
    await turnpike.close();
  }
  conclude(turnpike.home);
}

function newFolder(asked) {
  if (asked === undefined) return mkdtempSync(join(tmpdir(), 'turnpike-demo-'));
  const folder = resolve(asked);
  if (existsSync(folder) && readdirSync(folder).length > 0) throw new Error(`${folder} is not empty`);
  mkdirSync(folder, { recursive: true });
  return folder;
}

async function demonstrate(turnpike, outside) {
  const [session, hostile] = [readSession(), readHostile()];
  const runs = [
    { title: 'session', about: 'A careful agent works on a case.', proposals: session, ending: 'completed: finished' },
    { title: 'hostile', about: 'A hostile agent attacks it.', proposals: hostile, ending: 'denied: limit.denials' },
    {
      title: 'mixture',
      about: 'The same session, with the same attacks (!) in between.',
      proposals: mix(session, hostile),
      ending: 'completed: finished',
    },
  ];
  for (const [index, run] of runs.entries()) {
    layOut(join(turnpike.home.sandbox, `case-${run.title}`), run.title === 'session' ? null : join(outside, run.title));
    Object.assign(run, await play(turnpike, index + 1, run));
  }
  checkFiles(turnpike.home.sandbox, outside, runs);
  await showRuns(turnpike, runs);
  await prove(turnpike);
}

/** One agent run from its first proposal to its end. */
async function play(turnpike, number, { title, about, proposals, ending }) {
  say(`\n${paint(`${number}  ${about}`, 'bold')}`);
  const agent = await turnpike.startAgent({ case: `case-${title}`, actor: `${title}-agent` });
  const { status, outcome: refusal } = await turnpike.ledger.run(agent.run_id);
  if (status !== 'running') throw new Error(`the agent run was not allowed: ${refusal}`);
  const responses = [];
  for (const [index, proposal] of proposals.entries()) {
    const response = await agent.submit(proposal.payload);
    responses.push(response);
    say(stepLine(index + 1, proposal, response));
    const { outcome, error_code } = proposal.expected;
    const asExpected = response.outcome === outcome && (response.error?.error_code ?? null) === error_code;
    expect(asExpected, `${title} ${index + 1}: expected ${outcome} ${error_code ?? ''}, not ${response.outcome}`);
    expect(!JSON.stringify(response).includes(SECRET), `${title} ${index + 1}: a file outside was shown`);
  }
  const { state, reason } = await agent.end();
  expect(`${state}: ${reason}` === ending, `${title}: the run ended as ${state}: ${reason}, not ${ending}`);
  const last = responses.at(-1);
  if (last?.action === 'FINISH' && last.result !== null) say(`\n${paragraph(last.result.response)}`);
  return { root: agent.root_run_id, responses };
}

/** Checks that the attacks changed neither the work nor any file outside the sandbox. */
function checkFiles(sandbox, outside, runs) {
  const [session, hostile, mixture] = runs.map(({ title }) => filesOf(join(sandbox, `case-${title}`)));
  const injected = 'notes/inbox-1.md';
  expect(mixture.has(injected) && hostile.has(injected), `${injected} was not written`);
  mixture.delete(injected);
  expect(same(session, mixture), 'the attacks changed the files of the session');
  for (const name of ['hostile/statement.md', 'hostile/copy.txt', 'mixture/statement.md', 'mixture/copy.txt']) {
    expect(readFileSync(join(outside, name), 'utf8') === `${SECRET}\n`, `${name} outside the sandbox was changed`);
  }
}

const same = (a, b) => a.size === b.size && [...a].every(([path, hash]) => b.get(path) === hash);

async function showRuns(turnpike, runs) {
  say(`\n${paint('Runs', 'bold')}  (every privileged act is a run of its own; those that ended alike are one line)`);
  for (const { root } of runs) {
    const tree = await turnpike.ledger.treeOf(root);
    say(
      `\n${treeLines(tree.runs)
        .map((line) => `  ${line}`)
        .join('\n')}`,
    );
  }
  say(`\n${paint('Outcomes', 'bold')}`);
  for (const { title, responses } of runs) say(countLine(title, responses));
}

/** Verifies the ledger, then replays it through the machines. */
async function prove(turnpike) {
  say(`\n${paint('Proof', 'bold')}`);
  const verdict = await turnpike.ledger.verify();
  expect(verdict.ok, `the ledger does not verify: ${JSON.stringify(verdict.problems?.[0])}`);
  if (verdict.ok) say(`  verified  ${verdict.entries} entries of ${verdict.trees} run trees, root ${verdict.root}`);
  const { ok, steps, responses, difference } = await turnpike.replay();
  expect(ok, `the replay differs: ${JSON.stringify(difference)}`);
  if (ok) say(`  replayed  ${steps} steps and ${responses} responses, each the same byte for byte`);
}

function conclude(paths) {
  say(`\n${paint('Stored', 'bold')}`);
  for (const name of ['ledger', 'head', 'sandbox']) say(`  ${name.padEnd(9)} ${paths[name]}`);
  say(`  look at it: npx turnpike runs --home ${paths.home}`);
  if (surprises.length === 0) {
    say(`\n${paint('Everything was as expected.', 'SUCCESS')}`);
    return;
  }
  for (const surprise of surprises) say(`${paint('UNEXPECTED', 'DENIED')}  ${visible(surprise, 400)}`);
  process.exitCode = 1;
}

main().catch((error) => {
  process.stderr.write(`${error.code ?? error.name}: ${error.message}\n`);
  process.exitCode = 3;
});
