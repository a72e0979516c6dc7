// What is tried with each client. Each scenario returns whether the client did what it must, and what it did, in words.

import { offeredTools } from './model-apis.mjs';

const FINISHED = { text: 'FINISHED' };
const ALLOWED = { decision: 'allow', run_id: 'run_test.1' };
const deny = (reason) => ({ decision: 'deny', reason });
const REASON = 'Turnpike: rule call.not_allowed, run run_test.1.3, step 7. Allowed: ls, cat';
const APPROVAL = 'Turnpike: approval pending for run run_test.1.4. Repeat the same call after the approval.';

const callsOf = (gate) => gate.events.filter(({ read }) => read?.kind === 'call');
const outcomesOf = (gate) => gate.events.filter(({ read }) => read?.kind === 'outcome');
const unreadOf = (gate) => gate.events.filter(({ read }) => read === null);
const toolsOf = (entries) => entries.map(({ read }) => read.call.tool.replace('native.', '')).join(', ');

const turns = (...calls) => [...calls.map((call) => ({ calls: [call] })), FINISHED];

/** Every scenario, by its name. `title` is what the table says of it. */
export const SCENARIOS = {
  tools: {
    title: 'the tools that it offers to the model, apart from those of MCP servers',
    async run({ model, runClient }) {
      model.setScript([FINISHED]);
      await runClient('do it');
      const names = offeredTools(model.requests.map(({ body }) => body));
      return { ok: names.length > 0, did: names.join(', ') };
    },
  },
  allow: {
    title: 'an allowed command runs, and its outcome is reported',
    async run({ client, model, gate, runClient, exists }) {
      model.setScript(turns(client.shell('echo one > a.txt; cat a.txt')));
      const { code } = await runClient('do it');
      const [outcome] = outcomesOf(gate);
      const status = outcome?.read.outcome.status;
      return {
        ok: code === 0 && exists('a.txt') && outcome !== undefined && unreadOf(gate).length === 0,
        did: `ran; reported as ${status}`,
      };
    },
  },
  deny: {
    title: 'a denied command does not run, and the reason reaches the model',
    async run({ client, model, gate, runClient, exists, hasReachedModel }) {
      model.setScript(turns(client.shell('echo one > a.txt')));
      gate.setRule(() => deny(REASON));
      await runClient('do it');
      const told = hasReachedModel(REASON);
      return {
        ok: !exists('a.txt') && told,
        did: `${exists('a.txt') ? 'ran' : 'did not run'}; reason ${told ? 'reached' : 'did not reach'} the model`,
      };
    },
  },
  pending: {
    title: 'a call that needs an approval is denied, and the same call runs after it, in a new process',
    async run({ client, model, gate, runClient, exists, hasReachedModel }) {
      model.setScript(turns(client.shell('echo one > a.txt')));
      gate.setRule(() => ({ decision: 'pending', reason: APPROVAL }));
      await runClient('do it');
      const before = exists('a.txt');
      const [first] = callsOf(gate);
      gate.setRule((read) =>
        read.call.input.command.sha256 === first.read.call.input.command.sha256 ? ALLOWED : deny('x'),
      );
      await runClient('do it');
      const told = hasReachedModel('approval pending');
      return { ok: !before && exists('a.txt') && told, did: 'denied with "approval pending"; the repeat ran' };
    },
  },
  write: {
    title: 'a file is written only with an allow, and its path is known before',
    async run({ client, model, gate, project, runClient, exists }) {
      model.setScript(turns(client.write(`${project}/no.txt`, 'x'), client.write(`${project}/yes.txt`, 'x')));
      gate.setRule((read) => (JSON.stringify(read.call.input).includes('no.txt') ? deny(REASON) : ALLOWED));
      await runClient('do it');
      return {
        ok: !exists('no.txt') && exists('yes.txt') && callsOf(gate).length === 2,
        did: `decided as ${toolsOf(callsOf(gate).slice(0, 1))}`,
      };
    },
  },
  'mcp tool': {
    title: 'a tool of an MCP server is decided with its server and its name',
    async run({ client, model, gate, runClient, hasReachedModel }) {
      model.setScript(turns(client.note('first'), client.note('second')));
      gate.setRule((_, n) => (n === 1 ? ALLOWED : deny(REASON)));
      await runClient('do it');
      const calls = callsOf(gate).map(({ read }) => `${read.call.input.server}/${read.call.input.tool}`);
      const ok = calls.join() === 'notes/note,notes/note' && hasReachedModel('noted: first');
      return { ok: ok && !hasReachedModel('noted: second'), did: `decided as ${calls[0]}` };
    },
  },
  subagent: {
    title: 'a call of a subagent is decided, and has the subagent',
    async run({ client, model, gate, runClient, exists }) {
      const nested = { calls: [client.shell('echo sub > denied.txt')] };
      const second = { calls: [client.shell('echo sub > allowed.txt')] };
      model.setScript({
        default: [...client.subagent('NESTED do it'), FINISHED],
        NESTED: [nested, second, { text: 'nested end' }],
      });
      gate.setRule((read) => (JSON.stringify(read.call.input).includes('denied.txt') ? deny(REASON) : ALLOWED));
      await runClient('do it');
      const shells = callsOf(gate).filter(({ read }) => read.call.tool === 'native.shell');
      const named = shells.length > 0 && shells.every(({ read }) => read.agent !== null);
      return {
        ok: !exists('denied.txt') && exists('allowed.txt') && (named || client.name === 'gemini-cli'),
        did: named ? 'decided, with the id of the subagent' : 'decided, without an id of the subagent',
      };
    },
  },
  parallel: {
    title: 'parallel calls are decided one by one, and match their outcomes',
    async run({ client, model, gate, runClient, exists }) {
      const calls = Array.from({ length: 8 }, (_, n) => client.shell(`echo ${n} > p${n}.txt`));
      model.setScript([{ calls }, FINISHED]);
      gate.setRule((read) => (/p[1357]/.test(read.call.input.command.text) ? deny(REASON) : ALLOWED));
      await runClient('do it');
      const ran = Array.from({ length: 8 }, (_, n) => exists(`p${n}.txt`));
      const ids = new Set(callsOf(gate).map(({ read }) => read.call.call_id));
      return {
        ok: ran.every((has, n) => has === (n % 2 === 0)) && callsOf(gate).length === 8,
        did: `4 ran, 4 did not; ${ids.size === 8 ? 'each has an id' : 'no ids'}; ${outcomesOf(gate).length} outcomes`,
      };
    },
  },
  'failed command': {
    title: 'a command that fails is reported',
    async run({ client, model, gate, runClient }) {
      model.setScript(turns(client.shell('ls /nothing-here')));
      await runClient('do it');
      const [outcome] = outcomesOf(gate);
      return {
        ok: outcome !== undefined && outcome.read.outcome.status !== 'done',
        did: `reported as ${outcome?.read.outcome.status}`,
      };
    },
  },
  ...Object.fromEntries(
    [
      ['hang', 'no answer in time'],
      ['cut', 'a connection that breaks'],
    ].map(([answer, words]) => [
      `gate: ${answer}`,
      {
        title: `${words} stops the call`,
        async run({ client, model, gate, runClient, exists }) {
          model.setScript(turns(client.shell('echo one > a.txt')));
          gate.setRule(() => answer);
          await runClient('do it');
          return { ok: callsOf(gate).length >= 1 && !exists('a.txt'), did: 'did not run' };
        },
      },
    ]),
  ),
  'gate: away': {
    title: 'a gate that does not run stops the call',
    async run({ client, model, gate, runClient, exists, hasReachedModel }) {
      model.setScript(turns(client.shell('echo one > a.txt')));
      await gate.close();
      await runClient('do it');
      const told = hasReachedModel('denied');
      return { ok: !exists('a.txt'), did: `did not run; reason ${told ? 'reached' : 'did not reach'} the model` };
    },
  },
  defer: {
    title: 'a pending call ends the process, and runs after the approval when the session is resumed',
    clients: ['claude-code'],
    async run({ client, model, gate, runClient, exists }) {
      model.setScript(turns(client.shell('echo one > a.txt')));
      gate.setRule(() => ({ decision: 'pending', reason: APPROVAL }));
      const variables = { MAY_DEFER: '1' };
      const first = await runClient('do it', { words: ['--output-format', 'json'], variables });
      const before = exists('a.txt');
      const { session_id, stop_reason } = JSON.parse(first.output);
      gate.setRule(() => ALLOWED);
      await runClient('', { words: ['--resume', session_id], variables });
      const ids = new Set(callsOf(gate).map(({ read }) => read.call.call_id));
      return {
        ok: !before && exists('a.txt') && ids.size === 1 && stop_reason === 'tool_deferred',
        did: 'ended with `tool_deferred`; resumed with the same id of the call',
      };
    },
  },
  write_stdin: {
    title: 'what the model types into a command that is still open (`write_stdin`)',
    clients: ['codex'],
    async run({ client, model, gate, runClient, exists }) {
      const open = client.shell('bash');
      open.input.tty = true;
      const type = { tool: 'write_stdin', input: { session_id: '$1', chars: 'echo x > typed.txt\n' } };
      type.capture = 'session ID (\\d+)';
      model.setScript(turns(open, type, client.shell('sleep 1')));
      gate.setRule((read) => (read.call.input.command?.text.includes('typed') ? deny(REASON) : ALLOWED));
      await runClient('do it');
      const seen = gate.events.some(({ event }) => event.tool_name === 'write_stdin');
      // The trust table names this gap. When a version closes it, this fails, and the table must change.
      return { ok: exists('typed.txt') && !seen, did: 'runs without any hook: the gate cannot decide it' };
    },
  },
  many: {
    title: 'many calls, 8 at a time: the gate allows two of five, denies two, and does not answer one',
    clientMs: 3_000_000,
    async run({ client, model, gate, runClient, exists, calls }) {
      const numbers = Array.from({ length: calls }, (_, n) => n);
      const groups = Array.from({ length: calls / 8 }, (_, n) => numbers.slice(n * 8, n * 8 + 8));
      const turnsOf = groups.map((group) => ({ calls: group.map((n) => client.shell(`echo ${n} > n${n}.txt`)) }));
      model.setScript([...turnsOf, FINISHED]);
      const rules = [ALLOWED, deny(REASON), 'cut', ALLOWED, deny(REASON)];
      gate.setRule((read) => rules[Number(/echo (\d+)/.exec(read.call.input.command.text)[1]) % 5]);
      // A busy machine may be slow to start a hook.
      await runClient('do it', { variables: { HOOK_MS: '14000' } });
      const ran = numbers.filter((n) => exists(`n${n}.txt`));
      const wrong = ran.filter((n) => rules[n % 5] !== ALLOWED);
      const allowed = numbers.filter((n) => rules[n % 5] === ALLOWED).length;
      const asked = callsOf(gate).length;
      return {
        ok: wrong.length === 0 && ran.length === allowed && asked === calls,
        did: `${asked} calls: ${ran.length} ran, ${wrong.length} of them without an allow`,
      };
    },
  },
};
