// All sizes of the suite in this folder.

import './admission-schedule.test.js';
