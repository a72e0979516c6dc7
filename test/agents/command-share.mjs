// node test/agents/command-share.mjs FILE [POLICY]: how much of recorded calls a coding policy allows, after a build.
//
// FILE    one call a line: `{ tool, command, calls?, agent?, label?, source? }`. Paths are those of the source; the
//         project is the one of the suite, and need not exist
// POLICY  a folder with lanes.yaml, roles.yaml and actions.yaml; default: the coding template

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const built = (path) => import(new URL(`../../build/compiled/src/${path}`, import.meta.url).href);
const { DIALECTS } = await built('features/hooks/dialects.js');
const { DEFAULT_SECRETS } = await built('core/contract/policy/secret-patterns.js');
const { decideCall } = await built('features/hooks/calls/call-decision.js');
const { loadFeaturesOfPolicy } = await built('core/contract/run/feature-vocabulary.js');
const { declareFeatures } = await built('features/declare-features.js');
const { loadPolicy } = await built('core/policy/files/check-policy.js');
const { projectPath } = await built('system/files/project-path.js');
const { recordableCall } = await built('features/hooks/gate/recordable-call.js');

const [file, folder = fileURLToPath(new URL('../../policies/templates/coding/policy', import.meta.url))] =
  process.argv.slice(2);
declareFeatures();
const fileOf = (name) => readFileSync(join(folder, `${name}.yaml`));
const files = { lanes: fileOf('lanes'), roles: fileOf('roles'), actions: fileOf('actions') };
const contents = Object.fromEntries(Object.entries(files).map(([name, bytes]) => [name, { bytes }]));
await loadFeaturesOfPolicy(contents);
const policy = loadPolicy(files);
const lane = [...policy.lanes.values()].find(({ calls }) => calls !== undefined);
const dialect = DIALECTS['claude-code'];

const projectOf = ({ source = '' }) =>
  source.includes('BookMinder') ? '/Users/palimondo/Developer/BookMinder' : '/app';

/** The input of a tool of Claude Code: a path, or for a search its members as JSON text. */
function inputOf(tool, text) {
  if (tool !== 'Bash' && text.startsWith('{')) return JSON.parse(text);
  const inputs = {
    Bash: { command: text },
    Grep: { pattern: 'x', path: text },
    Glob: { pattern: text },
    LS: { path: text },
    WebFetch: { url: text, prompt: 'x' },
    Write: { file_path: text, content: 'x' },
    Edit: { file_path: text, old_string: 'x', new_string: 'y' },
  };
  return inputs[tool] ?? { file_path: text };
}

function decisionOf(call) {
  const project = projectOf(call);
  const event = {
    ...{ session_id: 's', cwd: project, hook_event_name: 'PreToolUse', tool_use_id: 't', tool_name: call.tool },
    tool_input: inputOf(call.tool, call.command),
  };
  const read = dialect.readEvent(event);
  const resolve = (path, cwd) => projectPath(path, project, cwd);
  const recording = { dialect, secrets: DEFAULT_SECRETS, resolve, project };
  const found = read?.kind === 'call' ? recordableCall(event, read, recording) : null;
  return found === null ? 'unreadable' : decideCall(lane, found.call).decision;
}

const groups = new Map();
for (const line of readFileSync(file, 'utf8').split('\n').filter(Boolean)) {
  const call = JSON.parse(line);
  const decision = decisionOf(call);
  for (const name of [call.agent ?? 'calls', ...(call.label === undefined ? [] : [call.label])]) {
    const group = groups.get(name) ?? { distinct: 0, calls: 0, allow: 0, allowed_calls: 0, approval: 0 };
    const { calls = 1 } = call;
    group.distinct += 1;
    group.calls += calls;
    if (decision === 'allow') [group.allow, group.allowed_calls] = [group.allow + 1, group.allowed_calls + calls];
    if (decision === 'approval') group.approval += 1;
    groups.set(name, group);
  }
}
const share = (part, whole) => `${((100 * part) / whole).toFixed(1)} %`;
for (const [name, { distinct, calls, allow, allowed_calls, approval }] of groups)
  console.log(
    `${name}: of ${distinct} distinct, ${share(allow, distinct)} allowed and ${share(approval, distinct)} asked; ` +
      `of ${calls} calls, ${share(allowed_calls, calls)} allowed`,
  );
