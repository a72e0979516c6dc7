// What V8 made of a file is kept in the process of jest that met it first: each suite has a context of its own, in
// which jest has every file compiled anew.

import vm from 'node:vm';

const { SourceTextModule, compileFunction } = vm;

/** By the file's name: a context that is given other text under that name compiles that. */
const modules = new Map();
const functions = new Map();

/** V8 keeps for `import()` whose it is with what it compiles, and loses it with what was kept. */
const IMPORTS_LATER = /\bimport\s*[(/]/;

class CompiledOnce extends SourceTextModule {
  constructor(text, options) {
    const cachedData = known(modules, options.identifier, text);
    let isNew = cachedData === undefined;
    try {
      super(text, { ...options, cachedData });
    } catch (error) {
      // V8 does so when its flags have changed.
      if (error.code !== 'ERR_VM_MODULE_CACHED_DATA_REJECTED') throw error;
      super(text, options);
      isNew = true;
    }
    if (isNew && !IMPORTS_LATER.test(text)) modules.set(options.identifier, { text, data: this.createCachedData() });
  }
}

function compileFunctionOnce(text, parameters, options) {
  const cachedData = known(functions, options.filename, text);
  const compiled = compileFunction(text, parameters, {
    ...options,
    cachedData,
    produceCachedData: cachedData === undefined && !IMPORTS_LATER.test(text),
  });
  if (compiled.cachedDataRejected) functions.delete(options.filename);
  else if (compiled.cachedData !== undefined) functions.set(options.filename, { text, data: compiled.cachedData });
  return compiled;
}

function known(all, name, text) {
  const one = all.get(name);
  return one?.text === text ? one.data : undefined;
}

/** From now on jest's own uses of `node:vm` in this process keep what is compiled. */
export function keepCompiled() {
  vm.SourceTextModule = CompiledOnce;
  vm.compileFunction = compileFunctionOnce;
}
