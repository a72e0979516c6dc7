// All seeds of the suite beside it.
import './cluster-simulation.test.js';
