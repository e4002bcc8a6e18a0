package Names;
use strict;
use warnings;
use Exporter "import";
our @EXPORT_OK = qw(initials);

sub initials {
    my ($name) = @_;
    return join '', map { substr $_, 0, 1 } split ' ', $name;
}

1;
