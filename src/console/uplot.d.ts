// uPlot as the browser finds it: the build puts its module beside ours, under this name.
import uPlot from 'uplot';

export default uPlot;
