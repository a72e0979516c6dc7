// The suite in this folder, which prints its figure here.

import './loaded-modules.test.js';
