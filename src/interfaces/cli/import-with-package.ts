import { errorCode } from '../../system/error-code.js';
import { usageError } from '../../core/errors.js';

/**
 * Loads a part of the command that needs an optional package.
 * @throws UsageError that names the package, if it is not installed
 */
export async function importWithPackage<T>(name: string, load: () => Promise<T>): Promise<T> {
  try {
    return await load();
  } catch (error) {
    const isMissing = /^(?:ERR_)?MODULE_NOT_FOUND$/.test(errorCode(error));
    if (!isMissing || !String(error).includes(`'${name}'`)) throw error;
    throw usageError(`this needs the package ${name}, which is not installed: run \`npm install ${name}\``);
  }
}
