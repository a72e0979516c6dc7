import type { ActionName } from '../../core/contract/policy/catalogue.js';
import { EXECUTION_CAUSES, type FaultCode } from '../../core/contract/fault.js';
import { isJsonObject, type Json, type JsonObject } from '../../core/contract/json.js';
import type { DecisionResponse, StepError, StepResponse } from '../../core/contract/run/response.js';

/** The envelope of S2-23: the response of the runtime, and the sentence that an agent may show its user. */
export interface RenderedResponse<Response extends StepResponse = StepResponse> {
  readonly runtime_response: Response;
  readonly agent_output: string;
}

/**
 * Renders a response as a sentence that an agent can show its user, with file contents and names unchanged. Only the
 * command line and the examples use it: the runtime never returns this text (C10).
 */
export function renderAgentOutput<Response extends StepResponse>(response: Response): RenderedResponse<Response> {
  const agent_output = 'decision' in response ? sentenceForDecision(response) : sentenceFor(response);
  return { runtime_response: response, agent_output };
}

/** A DENY does not reveal whether the policy denied the action or the request was invalid (S2-12). */
function sentenceForDecision({ action, decision, result }: DecisionResponse): string {
  if (decision === 'DENY') return 'The request was refused, so nothing was done.';
  return result === null ? FAILED : successSentence(action, isJsonObject(result) ? result : {});
}

function sentenceFor({ action, outcome, result, error }: Exclude<StepResponse, DecisionResponse>): string {
  switch (outcome) {
    case 'SUCCESS':
      return successSentence(action, isJsonObject(result) ? result : {});
    case 'DENIED':
      return 'The requested action is not allowed due to security restrictions.';
    case 'VALIDATION_ERROR':
      return withExplanation('The request was not valid, so nothing was done.', error);
    case 'EXECUTION_ERROR':
      return error === null ? FAILED : withExplanation(failureSentence(error), error);
  }
}

/** Only a response with the exposure `explained` has an explanation (C94). */
const withExplanation = (sentence: string, error: StepError | null): string =>
  error?.explanation == null ? sentence : `${sentence} Reason: ${error.explanation}`;

const FAILED = 'The action could not be completed.';

/** A response omits the cause, but each cause has one constant message. */
const FAILURES: ReadonlyMap<string, string> = new Map([
  [EXECUTION_CAUSES.FILE_NOT_FOUND.message, 'The file could not be found.'],
  [EXECUTION_CAUSES.IS_A_DIRECTORY.message, 'The path names a directory, not a file.'],
  [EXECUTION_CAUSES.NOT_A_DIRECTORY.message, 'The path does not name a directory.'],
  [EXECUTION_CAUSES.ALREADY_EXISTS.message, 'Something of that name already exists.'],
  [EXECUTION_CAUSES.NOT_TEXT.message, 'The file is not a text file.'],
  [EXECUTION_CAUSES.TOO_LARGE.message, 'The file is too large to be read.'],
  [EXECUTION_CAUSES.OUTCOME_UNKNOWN.message, 'It is not known whether the action was carried out.'],
]);

function failureSentence({ error_code, message }: { error_code: FaultCode; message: string }): string {
  if (error_code === 'AUDIT_FAILURE') return 'The work was stopped because it could not be recorded.';
  return FAILURES.get(message) ?? FAILED;
}

const SUCCESSES: Readonly<Record<ActionName, (result: JsonObject) => string>> = {
  THINK: () => 'The thought was noted.',
  FINISH: ({ response }) => textOf(response),
  READ_FILE: ({ content }) => `The file content is:\n\n${textOf(content)}`,
  LIST_FILES: ({ entries }) => listing(entries),
  WRITE_FILE: () => 'The file was written.',
  CREATE_DIRECTORY: () => 'The directory was created.',
  DELETE_FILE: () => 'The file was deleted.',
  RENAME_FILE: () => 'The file was renamed.',
};

function successSentence(action: string | null, result: JsonObject): string {
  // Stryker disable next-line ConditionalExpression: no action is called null
  return action !== null && Object.hasOwn(SUCCESSES, action)
    ? SUCCESSES[action as ActionName](result)
    : 'The action was carried out.';
}

const textOf = (value: Json | undefined): string => (typeof value === 'string' ? value : '');

function listing(entries: Json | undefined): string {
  if (!Array.isArray(entries) || entries.length === 0) return 'The directory is empty.';
  const lines = entries
    .filter(isJsonObject)
    .map(({ name, type }) => (type === 'directory' ? `${textOf(name)}/` : textOf(name)));
  return `The directory contains:\n\n${lines.join('\n')}`;
}
