// What the test of language looks for: words that the glossary replaces, and the exceptions with their reasons.

/** Words that no identifier holds; `_` and humps separate words. */
export const IDENTIFIER_WORDS = [
  'afterword',
  'asked',
  'beside',
  'corridor',
  'doer',
  'ear',
  'forsaken',
  'foresworn',
  'hands',
  'heard',
  'hear',
  'hearing',
  'heed',
  'mouth',
  'nobody',
  'onlooker',
  'said',
  'somebody',
  'tell',
  'telling',
  'told',
  'troupe',
  'unasked',
  'whoever',
] as const;

/** Names of members that are recorded or stored, and so never change. */
export const RECORDED_NAMES: readonly string[] = ['phases_told', 'said'];

/** Texts on the wire, and so never changed, that a page repeats. */
export const FROZEN: readonly string[] = ['This was erased with its case, or is kept back'];

/** Phrases that no prose holds: a name of the rule, and what finds it. */
export const PHRASES: Readonly<Record<string, RegExp>> = {
  'whoever, nobody, somebody': /\b(?:whoever|nobody|somebody|whomever)\b/gi,
  archaism: /\b(?:thereof|of whom|for ever|beside|foresworn|mend(?:s|ed)?|none of ours?)\b/gi,
  'is none': /\b(?:is|are) none\b/gi,
  'that which': /\bthat which\b/gi,
  'told, heard, said': /\b(?:told|heard|asked to find out|is said|are said)\b/gi,
  metaphor: /\b(?:corridors?|troupe|onlookers?|afterword|no hands|the hands|house|shelf|the ear|mouth)\b/gi,
  'not to be had': /\bnot to be had\b/gi,
  'goes on': /\b(?:goes|go|going) on from\b/gi,
  'cut off, put away': /\b(?:put away|kept back|give(?:s|n)? room back|put in behind)\b/gi,
  'under way': /\bunder ?way\b/gi,
};

/** Singular type names of one word that look like participles or gerunds, and are nouns of the field. */
export const NOUNS: Readonly<Record<string, string>> = {
  Drawing: 'a noun: a chart as it is drawn',
  Feed: 'a noun: the stream of rows that the page reads',
};

/** Adverbs and irregular participles that are no type names. */
export const BARE_WORDS = [
  'Taken',
  'Told',
  'Heard',
  'Said',
  'Held',
  'Born',
  'Beside',
  'Given',
  'Known',
  'Written',
  'Left',
];

/** File names whose words are neither in the glossary nor in the exports. */
export const FILE_NAMES: Readonly<Record<string, string>> = {
  'src/interfaces/sdk/openai-agents.ts': 'the name of a package',
  'src/interfaces/cli/main.ts': 'the file that the package starts',
  'src/interfaces/inspector/page/main.tsx': 'the file that the page starts',
  'src/interfaces/inspector/page/boot.tsx': 'the file that the page starts',
  'src/core/contract/free-text.ts': 'the text that the file keeps out of entries, under the name of its behaviour flag',
  'src/core/contract/shapes.ts': 'the field calls a reusable part of a schema a shape',
  'src/core/contract/validators.ts': 'the field calls a compiled schema a validator',
  'src/names/unicode.ts': 'the standard whose algorithms the file implements',
  'src/core/ledger/proof/dsse.ts': 'the standard of the format: Dead Simple Signing Envelope',
  'src/interfaces/replay/jest-matchers.ts': 'the term of Jest for what the file exports',
  'src/interfaces/http/routes/openapi-document.ts': 'the standard of the document: OpenAPI, one word',
  'src/published/contract.ts': 'the entry `turnpike/contract` of the package',
  'src/interfaces/inspector/inspect.ts': 'the entry `turnpike/inspect` of the package',
  'src/features/sessions/rules/agent-activity.ts': 'names both what agents report and how long they are silent',
  'src/features/sessions/rules/task-progress.ts':
    'how much of a spec a session has finished: statuses, gates and phases',
};
