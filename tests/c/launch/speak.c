/* speak CODE [SIGNAL]: writes to both outputs, as bytes, and ends with this code or by this signal. */
#include <finespun/finespun.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    fsp_init(&argc, &argv); /* main goes on in processor 0 only */
    fputs("one line\nbytes \xff\x01 and no end", stdout);
    fflush(stdout);
    fputs("on stderr\n", stderr);
    if (argc > 2) raise(atoi(argv[2]));
    fsp_finalize();
    return argc > 1 ? atoi(argv[1]) : 0;
}
