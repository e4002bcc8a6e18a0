package Items;
use strict;
use warnings;
use Exporter "import";
our @EXPORT_OK = qw(count);

sub count {
    return $_[-1] // 0;
}

1;
