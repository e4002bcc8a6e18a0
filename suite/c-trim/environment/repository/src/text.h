void trim(char *line);
